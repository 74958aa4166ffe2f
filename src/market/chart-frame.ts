import { linearScale, type Range, type Scale, type TimeTick, ticksOf, timeTicks } from './chart-scale.ts'
import { decimalText } from './decimal-text.ts'
import { printedValue } from './figure-text.ts'
import { chartSize, element, lineBetween, type Point, palette, textAt } from './svg.ts'

export const plot = { left: 28, right: chartSize.width - 104 }
export type Pane = { top: number; bottom: number }

export const priceLabel = (value: number): string =>
  printedValue({ value: decimalText(value) ?? '', unit: 'price' })?.replace(' USD', '') ?? ''

export const axisLabel = (value: number, places: number): string => {
  const [whole = '', fraction] = Math.abs(value).toFixed(places).split('.')
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',')
  const isNegative = Number(value.toFixed(places)) < 0
  return `${isNegative ? '\u2212' : ''}${fraction === undefined ? grouped : `${grouped}.${fraction}`}`
}

export type Legend = { label: string; color: string; isDashed?: true }

export function headerOf({
  title,
  subtitle,
  legend,
}: {
  title: string
  subtitle: string
  legend: readonly Legend[]
}): string[] {
  let x = plot.left
  const items = legend.flatMap(({ label, color, isDashed }) => {
    const start = x
    x += 26 + label.length * 6.9 + 18
    return [
      lineBetween(
        { x: start, y: 81 },
        { x: start + 18, y: 81 },
        { stroke: color, 'stroke-width': 3, 'stroke-dasharray': isDashed && '4 3' },
      ),
      textAt({ x: start + 24, y: 86 }, label, { fill: palette.ink }),
    ]
  })
  return [
    textAt({ x: plot.left, y: 38 }, title, { 'font-size': 24, 'font-weight': 600, fill: palette.ink }),
    textAt({ x: plot.left, y: 61 }, subtitle, { 'font-size': 14 }),
    ...items,
  ]
}

/** A value at the right of a pane, on a coloured ground. */
export type Tag = { y: number; text: string; color: string; isOutlined?: true }

const tagHeight = 20

/** Moves tags apart but leaves their order: each stays as near to its value as the others allow. */
export function placedTags(tags: readonly Tag[], { top, bottom }: Pane): PlacedTag[] {
  const step = tagHeight + 1
  const groups: { y: number; tags: Tag[] }[] = []
  for (const tag of [...tags].sort((a, b) => a.y - b.y)) {
    let group = { y: tag.y, tags: [tag] }
    for (let above = groups.at(-1); above && overlaps(above, group, step); above = groups.at(-1)) {
      groups.pop()
      const all = [...above.tags, ...group.tags]
      group = { y: all.reduce((sum, { y }) => sum + y, 0) / all.length, tags: all }
    }
    const half = ((group.tags.length - 1) * step) / 2
    group.y = Math.min(Math.max(group.y, top + half), Math.max(top + half, bottom - half))
    groups.push(group)
  }
  return groups.flatMap(({ y, tags: all }) =>
    all.map((tag, at) => ({ ...tag, valueY: tag.y, y: y + (at - (all.length - 1) / 2) * step })),
  )
}
export type PlacedTag = Tag & { valueY: number }

type Group = { y: number; tags: readonly Tag[] }
const overlaps = (above: Group, below: Group, step: number): boolean =>
  below.y - above.y < ((above.tags.length + below.tags.length) / 2) * step

export const drawTag = ({ y, valueY, text, color, isOutlined }: PlacedTag): string[] => [
  lineBetween({ x: plot.right, y: valueY }, { x: plot.right + 8, y }, { stroke: color }),
  element('rect', {
    x: plot.right + 8,
    y: y - tagHeight / 2,
    width: chartSize.width - plot.right - 16,
    height: tagHeight,
    rx: 3,
    fill: isOutlined ? palette.background : color,
    stroke: color,
  }),
  textAt({ x: plot.right + 14, y: y + 4.5 }, text, {
    fill: isOutlined ? color : palette.background,
    'font-weight': 600,
  }),
]

/** Draws horizontal lines with their values; a value is left out if a tag covers its place. */
export function gridOf(
  { top, bottom }: Pane,
  range: Range,
  { scale, tags = [], count = 7, labelOf = axisLabel }: GridOptions,
): string[] {
  const { values, places } = ticksOf(range, count)
  return [
    ...values.flatMap((value) => {
      const y = scale(value)
      const isFree = tags.every((tag) => Math.abs(tag.y - y) > tagHeight * 0.95)
      return [
        lineBetween({ x: plot.left, y }, { x: plot.right, y }, { stroke: palette.grid }),
        ...(isFree ? [textAt({ x: plot.right + 14, y: y + 4.5 }, labelOf(value, places))] : []),
      ]
    }),
    lineBetween({ x: plot.left, y: bottom }, { x: plot.right, y: bottom }, { stroke: palette.frame }),
    lineBetween({ x: plot.right, y: top }, { x: plot.right, y: bottom }, { stroke: palette.frame }),
  ]
}
type GridOptions = {
  scale: Scale
  tags?: readonly Tag[]
  count?: number
  labelOf?: (value: number, places: number) => string
}

export const clippedTo = ({ top, bottom }: Pane, children: readonly string[]): string => {
  const id = `pane-${Math.round(top)}`
  const bounds = { x: plot.left, y: top, width: plot.right - plot.left, height: bottom - top }
  return [
    element('clipPath', { id }, [element('rect', bounds)]),
    element('g', { 'clip-path': `url(#${id})` }, children),
  ].join('')
}

export const labelAt = (point: Point, text: string, color: string = palette.muted): string =>
  textAt(point, text, {
    fill: color,
    'font-size': 12,
    stroke: palette.background,
    'stroke-width': 3.5,
    'stroke-linejoin': 'round',
    'paint-order': 'stroke',
  })

export const timeScale = (range: Range): Scale => linearScale(range, { start: plot.left, end: plot.right })

const halfLabel = 24
export function timeAxis(range: Range, panes: readonly Pane[], y: number): string[] {
  const scale = timeScale(range)
  const isInside = ({ ms }: TimeTick) =>
    scale(ms) > plot.left + halfLabel && scale(ms) < plot.right - halfLabel
  return timeTicks(range, 10)
    .filter(isInside)
    .flatMap((tick) => {
      const x = scale(tick.ms)
      return [
        ...panes.map(({ top, bottom }) =>
          lineBetween({ x, y: top }, { x, y: bottom }, { stroke: palette.grid }),
        ),
        textAt({ x, y }, tick.label, {
          'text-anchor': 'middle',
          'font-weight': tick.isDay ? 600 : undefined,
          fill: tick.isDay ? palette.ink : palette.muted,
        }),
      ]
    })
}

export const footerOf = (left: string, right: string): string[] => [
  textAt({ x: plot.left, y: 661 }, left, { 'font-size': 12 }),
  textAt({ x: chartSize.width - 12, y: 661 }, right, { 'font-size': 12, 'text-anchor': 'end' }),
]
