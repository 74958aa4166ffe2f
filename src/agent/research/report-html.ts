import { type Block, citedClaims, citedSources, type Report } from './report.ts'
import { figureRow, figuresText, sourceRow } from './report-markdown.ts'

/** A report as one file of HTML: no script, no request; its charts are within it. */

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => entities[char] ?? char)

/** Marks become links to their rows. */
const prose = (text: string): string =>
  escapeHtml(text)
    .replace(/(?<=\d) (?=%|USD|bn|M\b|k\b)|(?<=bn|M|k) (?=USD)/g, '\u00a0')
    .replace(/ ?\[(\d{1,4})\]/g, '<sup><a href="#c$1">[$1]</a></sup>')
const withoutMarks = (text: string): string => text.replace(/ ?\[\d{1,4}\]/g, '')

const table = (head: readonly string[], rows: readonly string[]): string =>
  `<div class="wide"><table><thead><tr>${head.map((text) => `<th>${prose(text)}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
const cells = (row: readonly string[]): string => row.map((text) => `<td>${prose(text)}</td>`).join('')

function written(block: Block): string {
  switch (block.type) {
    case 'text':
      return `<p>${block.sentences.map(prose).join(' ')}</p>`
    case 'list':
      return `<ul>${block.items.map((item) => `<li>${prose(item)}</li>`).join('')}</ul>`
    case 'table':
      return table(
        block.head,
        block.rows.map((row) => `<tr>${cells(row)}</tr>`),
      )
    case 'image': {
      const alt = block.alt.map(withoutMarks).join(' ')
      const data = Buffer.from(block.png).toString('base64')
      return `<figure><img alt="${escapeHtml(alt)}" src="data:image/png;base64,${data}"><figcaption>${block.alt.map(prose).join(' ')}</figcaption></figure>`
    }
  }
}

const style = `
:root{color-scheme:light}
body{font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:#1c2430;background:#fff;max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .5rem}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;padding-top:.9rem;border-top:1px solid #e3e8ef}
p,ul{margin:.5rem 0}
li{margin:.25rem 0}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums;margin:.6rem 0}
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #e3e8ef;vertical-align:top}
th{color:#5b6675;font-weight:600}
sup{font-size:.68em;line-height:0;margin-left:.1em}
a{color:#2457c5;text-decoration:none}
figure{margin:1rem 0}
img{max-width:100%;height:auto;border:1px solid #e3e8ef;border-radius:6px}
figcaption{color:#5b6675;font-size:.85rem}
code{font:.85em ui-monospace,SFMono-Regular,Consolas,monospace;overflow-wrap:anywhere}
tr:target{background:#fff6d6}
@media print{body{max-width:none;padding:0}h2{break-after:avoid}figure{break-inside:avoid}}
`

export function htmlOf(report: Report): string {
  const claims = citedClaims(report)
  const sources = citedSources(report, claims)
  const sections = report.sections.map(({ title, blocks }) => {
    const body = blocks.length > 0 ? blocks.map(written).join('\n') : '<p>Nothing is known about this.</p>'
    return `<h2>${prose(title)}</h2>\n${body}`
  })
  const figures = claims.map((claim) => {
    const [mark = '', text = '', value = '', formula = ''] = figureRow(claim)
    const n = mark.slice(1, -1)
    return `<tr id="c${n}"><td>${n}</td><td>${escapeHtml(text)}</td><td>${escapeHtml(value)}</td><td><code>${escapeHtml(formula)}</code></td></tr>`
  })
  const origins = sources.map((source) => {
    const [id = '', tool = '', args = '', at = '', sha = ''] = sourceRow(source)
    return `<tr><td>${escapeHtml(id)}</td><td><code>${escapeHtml(tool)}</code></td><td><code>${escapeHtml(args)}</code></td><td>${escapeHtml(at)}</td><td><code>${escapeHtml(sha)}</code></td></tr>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>${escapeHtml(report.title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${prose(report.title)}</h1>
<p>${report.lead.map(prose).join(' ')}</p>
${sections.join('\n')}
<h2>Figures</h2>
<p>${figuresText}</p>
${table(['mark', 'figure', 'value', 'computed as'], figures)}
<h2>Sources</h2>
${table(['source', 'operation', 'input', 'read at', 'SHA-256 of the output'], origins)}
</body>
</html>
`
}
