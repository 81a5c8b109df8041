import pytest


def test_reproduce_writes_tables_pictures_and_a_page(run, refused, tmp_path, data_dir):
    pytest.importorskip("matplotlib")
    code, out, err = run("reproduce", "figure-4c", "--quick", "-o", "out", "--data", data_dir)
    assert (code, err) == (0, "")
    assert "wrote out/paper.md" in out
    page = (tmp_path / "out" / "paper.md").read_text()
    assert "theorem 5" in page
    assert "Misprints" in page
    refused(2, "unknown figure 'figure9'; expected all, figure-1", "reproduce", "figure9")
