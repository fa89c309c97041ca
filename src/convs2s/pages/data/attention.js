for (const element of document.querySelectorAll(".attention")) {
  showAttention(element, JSON.parse(element.querySelector("script").textContent));
}
