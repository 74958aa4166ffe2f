/** A size has a name, or is written `<height>x<width>`, with the height first. */

export type Size = { width: number; height: number }

export const sideMin = 256
export const sideMax = 2_048

const named = {
  default: [1_024, 1_024],
  square: [512, 512],
  portrait_4_3: [768, 1_024],
  portrait_16_9: [576, 1_024],
  // The misspelt name is part of the interface.
  lanscape_4_3: [1_024, 768],
  landscape_4_3: [1_024, 768],
  landscape_16_9: [1_024, 576],
  square_hd: [1_024, 1_024],
  portrait_hd: [1_024, 1_536],
  landscape_hd: [1_536, 1_024],
} as const

export const sizeNames = Object.keys(named) as (keyof typeof named)[]
export const customPattern = '^[1-9][0-9]{2,3}x[1-9][0-9]{2,3}$'

/** Returns the default size for null, and undefined if the text is no size. */
export function sizeOf(text: string | null): Size | undefined {
  const known = Object.entries(named).find(([name]) => name === (text ?? 'default'))
  if (known) return { width: known[1][0], height: known[1][1] }
  const [, height, width] = /^([1-9]\d{2,3})x([1-9]\d{2,3})$/.exec(text ?? '') ?? []
  const size = { width: Number(width), height: Number(height) }
  const fits = (side: number) => side >= sideMin && side <= sideMax
  return fits(size.width) && fits(size.height) ? size : undefined
}
