"use strict";
// Which step is shown, which parts are needed, and the slider. All else is Shiny's.
document.documentElement.lang = "en";
const shownStep = (name, focus) => {
  for (const section of document.querySelectorAll("main section")) {
    section.hidden = section.id !== `step-${name}`;
  }
  for (const button of document.querySelectorAll(".steps button")) {
    if (button.dataset.step === name) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  }
  if (focus) {
    window.scrollTo(0, 0);
    document.getElementById(`title-${name}`).focus();
  }
  // outputs of hidden steps wait until they are shown
  if (window.jQuery) jQuery(`#step-${name}`).trigger("shown");
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-step]");
  if (button) Shiny.setInputValue("wish", button.dataset.step, { priority: "event" });
});

const slider = () => document.getElementById("epsilon_slider");
document.addEventListener("input", (event) => {
  if (event.target === slider()) {
    const value = Number((10 ** Number(slider().value)).toPrecision(3));
    document.getElementById("epsilon").value = value;
    Shiny.setInputValue("epsilon", value);
  } else if (event.target.id === "epsilon" && Number(event.target.value) > 0) {
    slider().value = Math.log10(Number(event.target.value));
  }
});

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("file").setAttribute("list", "offered");
  shownStep("records", false);
});

const ready = () => {
  Shiny.addCustomMessageHandler("step", ({ name }) => shownStep(name, true));
  Shiny.addCustomMessageHandler("shown", (parts) => {
    for (const [key, shown] of Object.entries(parts)) {
      const part = document.getElementById(key);
      if (part) part.hidden = !shown;
    }
  });
  Shiny.addCustomMessageHandler("done", ({ names }) => {
    for (const item of document.querySelectorAll(".steps li")) {
      item.classList.toggle("done", names.includes(item.id.replace("item-", "")));
    }
  });
  Shiny.addCustomMessageHandler("able", (parts) => {
    for (const [key, able] of Object.entries(parts)) document.getElementById(key).disabled = !able;
  });
};
document.addEventListener("DOMContentLoaded", () => {
  if (window.Shiny && Shiny.addCustomMessageHandler) ready();
  jQuery(document).on("shiny:disconnected", () => {
    const note = document.createElement("p");
    note.className = "gone";
    note.setAttribute("role", "alert");
    note.textContent = "The wizard has ended. Start it again with: spdp wizard";
    document.body.append(note);
  });
});
