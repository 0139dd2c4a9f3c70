// Leads to the same page of another version, or to its first page if it does not have it. Works from files: the list of
// versions and of their pages is a script, since a page from a file may load no data.
(function () {
  const place = document.querySelector(".version-switch");
  const versions = window.streamappVersions;
  if (!place || !versions || versions.length < 2) return;
  const { version, page, root } = place.dataset;
  const choice = place.querySelector("select");
  for (const each of versions) choice.add(new Option(each.label, each.name, false, each.name === version));
  choice.addEventListener("change", () => {
    const chosen = versions.find((each) => each.name === choice.value);
    const target = chosen.pages.includes(page) ? page : "README";
    location.href = `${root}../${encodeURIComponent(chosen.name)}/${target}.html`;
  });
  place.hidden = false;
})();
