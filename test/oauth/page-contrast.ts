/** Relative luminance and contrast of WCAG 2. The text is evaluated in the page. */
export const contrastsInPage = `(() => {
  const channel = (value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number)
  const luminance = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255)
  const backgroundOf = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor)
      if (color.length === 3 || color[3] === 1) return color
    }
    return [255, 255, 255]
  }
  const contrast = (one, two) => {
    const [low, high] = [luminance(one), luminance(two)].sort((a, b) => a - b)
    return (high + 0.05) / (low + 0.05)
  }
  const texts = [...document.querySelectorAll('h1,h2,p,label,a,button,dt,dd,li span,footer,.brand span')]
    .filter((each) => each.textContent.trim() !== '')
    .map((each) => [each.textContent.trim().slice(0, 30), contrast(rgb(getComputedStyle(each).color), backgroundOf(each)), 4.5])
  const borders = [...document.querySelectorAll('input:not([type=hidden])')]
    .map((each) => [each.name, contrast(rgb(getComputedStyle(each).borderTopColor), backgroundOf(each)), 3])
  return [...texts, ...borders].filter(([, found, least]) => found < least)
})()`
