"""Where each statement of the paper is in the code, and the test that shows it."""

__all__ = ["MISPRINTS", "STATEMENTS"]

THEOREMS = "tests/theorems/test_paper.py"
FIGURES = "tests/paper/test_reproduce.py"
# statement of the paper; where it is in the code; the test that shows it
STATEMENTS = (
    (
        "Table 1, the mechanisms and how their errors grow",
        "spdp.mechanisms.RiemannianLaplace, spdp.mechanisms.TangentGaussian",
        f"{THEOREMS}::test_laplace_utility_grows_as_d_times_d_plus_1",
    ),
    (
        "Table 2, operations of the vector space; lemma 1, vecd ∘ Logm is an isometry",
        "spdp.geometry.vecd, spdp.geometry.logm, spdp.geometry.expm",
        f"{THEOREMS}::test_lemma_1_vecd_logm_is_an_isometry",
    ),
    (
        "Definition 1, the log Gaussian law",
        "spdp.distributions.LogGaussian",
        f"{THEOREMS}::test_definition_1_log_gaussian",
    ),
    (
        "Lemma 2, its properties",
        "spdp.distributions.LogGaussian",
        f"{THEOREMS}::test_lemma_2_properties_of_the_log_gaussian",
    ),
    (
        "Definition 2 and algorithm 1, the tangent Gaussian mechanism; corollary 1, it is the "
        "summary plus noise",
        "spdp.mechanisms.TangentGaussian",
        f"{THEOREMS}::test_definition_2_and_corollary_1_tangent_gaussian_is_f_plus_noise",
    ),
    (
        "Theorem 1, the law of the privacy loss",
        "spdp.privacy.calibration",
        f"{THEOREMS}::test_theorem_1_distribution_of_the_privacy_loss",
    ),
    (
        "Theorem 2, privacy of both calibrations",
        "spdp.privacy.calibration",
        f"{THEOREMS}::test_theorem_2_privacy_of_both_calibrations",
    ),
    (
        "Theorem 3, sensitivity of the Fréchet mean",
        "spdp.lattice, spdp.queries.VectorSum",
        f"{THEOREMS}::test_theorem_3_sensitivity_of_the_frechet_mean",
    ),
    (
        "Theorem 4, utility",
        "spdp.privacy.laws",
        f"{THEOREMS}::test_theorem_4_utility_and_misprint_2",
    ),
    (
        "Lemma 3, eigenvalue bounds give a radius",
        "spdp.EigenvalueBounds",
        f"{THEOREMS}::test_lemma_3_eigenvalue_bounds_give_a_radius",
    ),
    (
        "Lemma 4 and theorem 5, the radius of covariance descriptors",
        "spdp.descriptors.descriptor_bounds, spdp.descriptors.paper_radius",
        "tests/test_descriptors.py::test_misprint_5",
    ),
    (
        "The baseline's sampler, a Markov chain (appendix)",
        "spdp.distributions.LogLaplace",
        f"{THEOREMS}::test_misprint_4",
    ),
    (
        "Figure 1, synthetic data",
        "spdp.paper.utility_epsilon, spdp.paper.utility_delta, spdp.paper.extrinsic",
        f"{FIGURES}::test_measured_errors_agree_with_the_exact_laws",
    ),
    (
        "Figures 2 and 3, images",
        "spdp.paper.medical, spdp.paper.images",
        f"{FIGURES}::test_measured_errors_agree_with_the_exact_laws",
    ),
    (
        "Figure 4, run time, burn-in, tightness",
        "spdp.paper.runtime, spdp.paper.burn_in, spdp.paper.tightness",
        f"{FIGURES}::test_every_figure_has_the_same_face",
    ),
)
# what is wrong, and the test that shows it
MISPRINTS = (
    (
        "Theorem 2, analytic condition: the second Φ must have −Δ/2σ. As printed, any σ passes "
        "and nothing is private.",
        f"{THEOREMS}::test_misprint_1",
    ),
    (
        "Theorem 4 (utility) prints 4r²; its proof, and the truth, is 8r².",
        f"{THEOREMS}::test_theorem_4_utility_and_misprint_2",
    ),
    (
        "Definition 1: h(λ_i, λ_j) lacks the denominator λ_i − λ_j.",
        f"{THEOREMS}::test_misprint_3",
    ),
    (
        "MCMC acceptance: the denominator must be exp(−ρ(M, X_curr)/σ), not exp(−ρ(X_curr, X)/σ).",
        f"{THEOREMS}::test_misprint_4",
    ),
    (
        "Theorem 5: 14 and 16 in the main text, 12 and 14 in the appendix, which is right.",
        "tests/test_descriptors.py::test_misprint_5",
    ),
    (
        "The extrinsic sensitivity 2(e^r − 1)/n is too small for log-Euclidean means; e^s·2r/n "
        "is valid.",
        f"{THEOREMS}::test_misprint_6",
    ),
    (
        "PathMNIST is RGB and OCTMNIST gray; FashionMNIST is gray, not RGB.",
        "tests/test_datasets.py::test_real_files",
    ),
    (
        "The Gaussian tail bound in the appendix; σ/(t√(2π))·exp(−t²/2σ²) is meant.",
        f"{THEOREMS}::test_misprint_8",
    ),
)
