from spdp import Release


def test_demo_shows_a_release_and_its_realised_error(run, refused, tmp_path):
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    assert "realised error" in out
    assert "\\n" not in out
    assert Release.load(tmp_path / "spdp-demo").certificate["private"] is True
    refused(2, "(pass --force)", "demo")
    assert run("demo", "--force")[0] == 0
