import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { renderAsync } from '@resvg/resvg-js'

/** Paints a gradient with the prompt on it. Prompt, seed, number, size and steps decide every byte. */

export type PictureOrder = {
  prompt: string
  seed: number
  index: number
  width: number
  height: number
  steps: number
  /** A flagged picture does not show its prompt. */
  isChecked: boolean
}

const font = fileURLToPath(
  import.meta.resolve('@expo-google-fonts/ibm-plex-sans/400Regular/IBMPlexSans_400Regular.ttf'),
)
/** The safety checker of the service flags a picture for these words. */
const flaggedWords = /\b(nsfw|nude|naked|gore|explicit|porn)\b/i
const lettersMax = 120

const escaped = (text: string): string =>
  text.replace(/[^\p{L}\p{N} ]/gu, (sign) => `&#${sign.codePointAt(0)};`)

export async function paintPicture(order: PictureOrder): Promise<{ png: Buffer; flagged: boolean }> {
  const { prompt, seed, index, width, height, steps, isChecked } = order
  const digest = createHash('sha256')
    .update(JSON.stringify([prompt, seed, index, width, height, steps]))
    .digest()
  const color = (at: number) => `#${digest.subarray(at, at + 3).toString('hex')}`
  const flagged = isChecked && flaggedWords.test(prompt)
  const printable = prompt.replace(/\p{C}/gu, ' ').slice(0, lettersMax).toWellFormed()
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
<linearGradient id="sky" gradientTransform="rotate(${digest[6]! % 90})"><stop stop-color="${color(0)}"/><stop offset="1" stop-color="${color(3)}"/></linearGradient>
<rect width="100%" height="100%" fill="url(#sky)"/>
<text x="${width / 2}" y="${height / 2}" font-size="${width / 20}" fill="#ffffff" text-anchor="middle">${flagged ? '' : escaped(printable)}</text>
</svg>`
  const image = await renderAsync(svg, { font: { loadSystemFonts: false, fontFiles: [font] } })
  return { png: image.asPng(), flagged }
}
