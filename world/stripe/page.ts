import type { ServerResponse } from 'node:http'

/** The look of the provider's pages: what is bought beside how it is paid; one column on a phone. */

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`)

const style = `
:root { color-scheme: light dark; --ground: #f6f8fa; --sheet: #fff; --text: #1a1f36; --faint: #4f566b; --line: #c1c9d2; --accent: #4b45d6; --on-accent: #fff; --wrong: #b3093c }
@media (prefers-color-scheme: dark) { :root { --ground: #14171f; --sheet: #1d212c; --text: #eef0f5; --faint: #aeb6c6; --line: #475066; --accent: #a29cff; --on-accent: #14171f; --wrong: #ff8fa9 } }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; background: var(--ground); color: var(--text) }
main { display: grid; grid-template-columns: 1fr 1fr; min-height: 100vh }
section { padding: clamp(1.25rem, 5vw, 4rem) }
section.sheet { background: var(--sheet) }
.box { max-width: 26rem; margin: 0 auto }
h1 { font-size: 1rem; font-weight: 500; margin: 0; color: var(--faint) }
.price { font-size: 2.25rem; font-weight: 600; margin: .25rem 0 1rem }
dl { display: grid; grid-template-columns: 1fr auto; gap: .5rem 0; margin: 0 }
dd { margin: 0; padding-left: .5rem; text-align: right }
dt.total, dd.total { font-weight: 600; border-top: 1px solid var(--line); padding-top: .5rem }
label { display: block; font-weight: 500; margin: 0 0 1rem }
input { display: block; width: 100%; margin-top: .25rem; padding: .7rem .75rem; font: inherit; color: inherit; background: transparent; border: 1px solid var(--line); border-radius: .4rem }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: .75rem }
button { width: 100%; padding: .8rem; font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent); border: 0; border-radius: .4rem; cursor: pointer }
button.plain { background: transparent; color: var(--accent); border: 1px solid var(--line); margin-top: .75rem }
a { color: var(--accent) }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
.wrong { color: var(--wrong); font-weight: 500 }
::placeholder { color: var(--faint); opacity: 1 }
form p:first-child { margin-top: 0 }
details { margin-top: .5rem }
summary { padding: .75rem 0; cursor: pointer }
.note { color: var(--faint); font-size: .9rem; font-weight: 400 }
table { border-collapse: collapse; width: 100%; font-size: .9rem } td { padding: .15rem 0 } td:last-child { text-align: right; color: var(--faint) }
@media (max-width: 46rem) { main { grid-template-columns: 1fr; min-height: 0 } }
`

export type Page = { title: string; summary: string; content: string }

export function sendPage(answer: ServerResponse, status: number, { title, summary, content }: Page): void {
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title><link rel="icon" href="data:,"><style>${style}</style></head>
<body><main><section><div class="box">${summary}<p class="note">This is the payment page of the local world: no money moves.</p></div></section><section class="sheet"><div class="box">${content}</div></section></main></body></html>`
  answer.writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' })
  answer.end(html)
}

export const money = (cents: number, currency: string): string => {
  const sign = cents < 0 ? '-' : ''
  const digits = String(Math.abs(cents)).padStart(3, '0')
  const symbol = currency === 'usd' ? '$' : `${currency.toUpperCase()} `
  return `${sign}${symbol}${digits.slice(0, -2)}.${digits.slice(-2)}`
}
