/** This module writes pieces of SVG. All text is escaped, because names in it come from strangers. */

type Value = string | number
export type Attributes = Readonly<Record<string, Value | undefined>>

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}
const escaped = (text: string): string => text.replace(/[&<>"]/g, (char) => entities[char] ?? char)
const rounded = (value: Value): string =>
  typeof value === 'number' ? String(Math.round(value * 100) / 100) : escaped(value)

const written = (attributes: Attributes): string =>
  Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}="${rounded(value ?? '')}"`)
    .join('')

export const element = (name: string, attributes: Attributes, children: readonly string[] = []): string =>
  children.length === 0
    ? `<${name}${written(attributes)}/>`
    : `<${name}${written(attributes)}>${children.join('')}</${name}>`

export type Point = { x: number; y: number }

export const textAt = ({ x, y }: Point, text: string, attributes: Attributes = {}): string =>
  element('text', { x, y, 'font-size': 13, fill: palette.muted, ...attributes }, [escaped(text)])

export const lineBetween = (from: Point, to: Point, attributes: Attributes): string =>
  element('line', { x1: from.x, y1: from.y, x2: to.x, y2: to.y, ...attributes })

/** Draws a line through points; a point that is no number interrupts the line. */
export function pathThrough(points: readonly Point[], attributes: Attributes): string {
  let isOpen = false
  const steps = points.flatMap(({ x, y }) => {
    const isPoint = Number.isFinite(x) && Number.isFinite(y)
    const step = isPoint ? [`${isOpen ? 'L' : 'M'}${rounded(x)} ${rounded(y)}`] : []
    isOpen = isPoint
    return step
  })
  return steps.length === 0 ? '' : element('path', { d: steps.join(''), fill: 'none', ...attributes })
}

export const palette = {
  background: '#ffffff',
  ink: '#1c2430',
  muted: '#5b6675',
  grid: '#e9edf2',
  frame: '#cbd3dd',
  up: '#12936b',
  down: '#d6404f',
  blue: '#2457c5',
  orange: '#d97a06',
  violet: '#7c4dbd',
  grey: '#8a94a3',
  band: '#2457c5',
} as const

export const fontFamily = 'IBM Plex Sans'
export const chartSize = { width: 1_200, height: 675 }

export const documentOf = (children: readonly string[]): string =>
  element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width: chartSize.width,
      height: chartSize.height,
      viewBox: `0 0 ${chartSize.width} ${chartSize.height}`,
      'font-family': fontFamily,
    },
    [element('rect', { ...chartSize, fill: palette.background }), ...children],
  )
