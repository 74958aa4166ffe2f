import type { Setting } from './backdrop.ts'
import { bear, bull, whale } from './beasts.ts'
import { between, type Random } from './random.ts'
import {
  around,
  type Color,
  circle,
  clamp,
  ellipse,
  extent,
  fill,
  joined,
  limb,
  mix,
  placed,
  polygon,
  rectangle,
  type Shape,
  smooth,
} from './raster.ts'
import { type Draw, standOf } from './stand.ts'

/** The figure of a picture, drawn from smooth shapes. */

const rocket: Draw = async (setting) => {
  const { raster, palette, random } = setting
  const { cx, cy, size } = standOf(setting, 0.5, 0.44)
  const turn = { angle: between(random, 0.18, 0.5) }
  const put = (shape: Shape, paint: Color | ((x: number, y: number) => Color), more = {}) =>
    fill(raster, around(cx, cy, size * 2.2), placed(shape, cx, cy, size, turn), paint, more)
  await put(limb(0, 0.5, 0, 1.5, 0.1, 0.3), mix(palette.low, [255, 255, 255], 0.6), {
    opacity: 0.55,
    soft: 0.08,
  })
  await put(
    polygon([
      [-0.13, 0.44],
      [0.13, 0.44],
      [0.05, 0.72],
      [0, 1.02],
      [-0.05, 0.72],
    ]),
    [255, 138, 40],
    { soft: 0.012 },
  )
  await put(
    polygon([
      [-0.075, 0.44],
      [0.075, 0.44],
      [0, 0.78],
    ]),
    [255, 236, 150],
    { soft: 0.008 },
  )
  await put(
    polygon([
      [-0.15, 0.14],
      [-0.32, 0.46],
      [-0.12, 0.4],
    ]),
    [196, 48, 58],
  )
  await put(
    polygon([
      [0.15, 0.14],
      [0.32, 0.46],
      [0.12, 0.4],
    ]),
    [148, 34, 48],
  )
  const body = joined(0.02, ellipse(0, 0, 0.175, 0.54), rectangle(-0.12, 0.1, 0.12, 0.44, 0.03))
  const shade = (x: number, y: number): Color => {
    const across = ((x - cx) * Math.cos(turn.angle) + (y - cy) * Math.sin(turn.angle)) / size
    return mix([250, 250, 252], [138, 148, 170], smooth(-0.1, 0.18, across))
  }
  await put(body, shade)
  await put((x, y) => Math.max(body(x, y), y + 0.27), [214, 58, 66])
  await put(circle(0, -0.08, 0.088), [70, 82, 104])
  await put(circle(0, -0.08, 0.066), [120, 200, 236])
  await put(ellipse(-0.02, -0.105, 0.026, 0.015, 0.6), [236, 250, 255])
  await put(rectangle(-0.1, 0.415, 0.1, 0.455, 0.01), [84, 92, 112])
}

const coin: Draw = async (setting) => {
  const { raster, random, layers, motif } = setting
  const { cx, cy, size } = standOf(setting, 0.3, 0.52)
  const isEther = motif.symbol === 'ether' || (motif.symbol === undefined && random() < 0.4)
  const gold = (x: number, y: number): Color =>
    mix([255, 226, 132], [186, 118, 22], clamp(0.5 + (x - cx + (y - cy) * 1.2) / (size * 2.6)))
  await fill(
    raster,
    around(cx, cy, size * 2),
    ellipse(cx + size * 0.06, cy + size * 1.12, size * 0.95, size * 0.12),
    [10, 8, 20],
    { opacity: 0.4, soft: size * 0.08 },
  )
  await fill(
    raster,
    around(cx, cy, size * 1.3),
    circle(cx + size * 0.05, cy + size * 0.03, size),
    [128, 78, 12],
  )
  await fill(raster, around(cx, cy, size * 1.1), circle(cx, cy, size), gold)
  await fill(
    raster,
    around(cx, cy, size * 1.1),
    (x, y) => Math.abs(Math.hypot(x - cx, y - cy) - size * 0.86) - size * 0.022,
    [160, 98, 16],
  )
  const ticks = 24 + layers * 2
  for (let tick = 0; tick < ticks; tick++) {
    const angle = (tick / ticks) * 2 * Math.PI
    const [x, y] = [cx + Math.cos(angle) * size * 0.93, cy + Math.sin(angle) * size * 0.93]
    await fill(raster, around(x, y, size * 0.05), circle(x, y, size * 0.014), [150, 92, 14])
  }
  const raised = async (shape: Shape) => {
    await fill(
      raster,
      around(cx, cy, size),
      placed(shape, cx + size * 0.025, cy + size * 0.03, size),
      [140, 84, 10],
    )
    await fill(raster, around(cx, cy, size), placed(shape, cx, cy, size), (_, y) =>
      mix([255, 244, 190], [232, 176, 66], clamp((y - cy) / size + 0.5)),
    )
  }
  if (isEther) {
    await raised(
      polygon([
        [0, -0.62],
        [0.36, 0.02],
        [0, 0.22],
        [-0.36, 0.02],
      ]),
    )
    await raised(
      polygon([
        [0.34, 0.14],
        [0, 0.34],
        [-0.34, 0.14],
        [0, 0.62],
      ]),
    )
  } else {
    const bow =
      (y: number, r: number): Shape =>
      (px, py) =>
        Math.max(Math.abs(ellipse(0.06, y, r, r * 0.9)(px, py)) - 0.058, -0.06 - px)
    const bars = [
      rectangle(-0.3, -0.46, 0.08, -0.345),
      rectangle(-0.3, -0.058, 0.1, 0.058),
      rectangle(-0.3, 0.345, 0.1, 0.46),
      rectangle(-0.22, -0.46, -0.105, 0.46),
    ]
    const feet = [-0.12, 0.06].flatMap((x) => [
      rectangle(x, -0.58, x + 0.085, -0.4),
      rectangle(x, 0.4, x + 0.085, 0.58),
    ])
    await raised((x, y) =>
      Math.min(bow(-0.2, 0.2)(x, y), bow(0.2, 0.225)(x, y), ...[...bars, ...feet].map((bar) => bar(x, y))),
    )
  }
}

/** A walk with a trend. */
const pricesOf = (random: Random, count: number) => {
  const trend = between(random, -0.5, 0.7) / count
  let price = 1
  return Array.from({ length: count }, () => {
    const open = price
    price += trend + between(random, -0.09, 0.09)
    const [top, bottom] = [Math.max(open, price), Math.min(open, price)]
    return {
      open,
      close: price,
      high: top + between(random, 0.004, 0.05),
      low: bottom - between(random, 0.004, 0.05),
    }
  })
}

const candles: Draw = async ({ raster, random, palette, layers }) => {
  const { w, h } = extent(raster)
  const count = 14 + Math.min(22, layers * 2)
  await fill(
    raster,
    { left: w * 0.06, top: h * 0.14, right: w * 0.94, bottom: h * 0.86 },
    rectangle(w * 0.06, h * 0.14, w * 0.94, h * 0.86, 0.02),
    mix(palette.near, [10, 14, 26], 0.7),
    { opacity: 0.78 },
  )
  for (let line = 1; line < 6; line++)
    await fill(
      raster,
      { left: w * 0.06, top: 0, right: w * 0.94, bottom: h },
      rectangle(w * 0.08, h * (0.14 + line * 0.12), w * 0.92, h * (0.14 + line * 0.12) + 0.0012),
      [160, 176, 200],
      { opacity: 0.28 },
    )
  const spacing = (w * 0.82) / count
  const bars = pricesOf(random, count)
  const [low, high] = [Math.min(...bars.map((bar) => bar.low)), Math.max(...bars.map((bar) => bar.high))]
  const yOf = (price: number) => h * (0.8 - ((price - low) / (high - low)) * 0.6)
  const closes: [number, number][] = []
  for (const [index, bar] of bars.entries()) {
    const x = w * 0.09 + spacing * (index + 0.5)
    const color: Color = bar.close >= bar.open ? [38, 196, 128] : [236, 74, 86]
    const box = { left: x - spacing, top: 0, right: x + spacing, bottom: h }
    const wick = rectangle(x - spacing * 0.05, yOf(bar.high), x + spacing * 0.05, yOf(bar.low))
    await fill(raster, box, wick, mix(color, [255, 255, 255], 0.15))
    const [top, bottom] = [yOf(Math.max(bar.open, bar.close)), yOf(Math.min(bar.open, bar.close))]
    const body = rectangle(x - spacing * 0.32, top, x + spacing * 0.32, Math.max(bottom, top + 0.004), 0.003)
    await fill(raster, box, body, color)
    closes.push([x, yOf(bar.close)])
  }
  for (const [index, [x, y]] of closes.entries()) {
    const from = closes[index - 1]
    if (from)
      await fill(
        raster,
        { left: from[0] - 0.02, top: 0, right: x + 0.02, bottom: h },
        limb(from[0], from[1] - 0.012, x, y - 0.012, 0.0026),
        [255, 206, 92],
        { opacity: 0.8 },
      )
  }
}

const skins: readonly Color[] = [
  [246, 208, 180],
  [222, 170, 130],
  [176, 118, 82],
  [112, 72, 52],
]
const portrait: Draw = async (setting) => {
  const { raster, random, palette } = setting
  const { w, h } = extent(raster)
  const [cx, cy, size] = [w * 0.5, h * 0.5, Math.min(w, h) * 0.52]
  const skin = skins[Math.floor(random() * skins.length)]!
  const hair = (
    [
      [34, 24, 22],
      [92, 56, 30],
      [170, 120, 60],
      [120, 120, 128],
    ] as const
  )[Math.floor(random() * 4)]!
  const shirt = mix(palette.near, [60 + random() * 160, 60 + random() * 120, 80 + random() * 140], 0.7)
  const put = (shape: Shape, paint: Color | ((x: number, y: number) => Color), more = {}) =>
    fill(raster, around(cx, cy, size * 2.4), placed(shape, cx, cy, size), paint, more)
  const isLong = random() < 0.5
  const lit =
    (color: Color) =>
    (x: number, y: number): Color =>
      mix(
        mix(color, [255, 255, 255], 0.16),
        mix(color, [20, 10, 30], 0.42),
        clamp(0.4 + (x - cx) / size + (y - cy) / (size * 4)),
      )
  if (isLong)
    await put(
      joined(
        0.1,
        ellipse(0, -0.22, 0.37, 0.42),
        limb(-0.27, 0, -0.32, 0.5, 0.12, 0.1),
        limb(0.27, 0, 0.32, 0.5, 0.12, 0.1),
      ),
      lit(hair),
    )
  await put(joined(0.12, ellipse(0, 1.05, 0.74, 0.52), limb(0, 0.5, 0, 0.9, 0.2, 0.4)), lit(shirt))
  await put(limb(0, 0.1, 0, 0.54, 0.145, 0.17), lit(mix(skin, [80, 40, 30], 0.22)))
  await put(
    joined(0.05, ellipse(0, -0.14, 0.275, 0.35), circle(-0.28, -0.1, 0.05), circle(0.28, -0.1, 0.05)),
    lit(skin),
  )
  await put(
    (x, y) => Math.max(ellipse(0, -0.24, 0.33, 0.34)(x, y), y + 0.24 - Math.abs(x) * 0.45 - 0.02),
    lit(hair),
  )
  for (const side of [-1, 1]) {
    await put(ellipse(side * 0.11, -0.13, 0.052, 0.028), [250, 250, 250])
    await put(circle(side * 0.11, -0.13, 0.026), mix(hair, [60, 90, 120], 0.4))
    await put(circle(side * 0.11, -0.13, 0.012), [12, 10, 14])
    await put(limb(side * 0.06, -0.2, side * 0.17, -0.205, 0.012, 0.007), hair)
  }
  await put(limb(0.005, -0.1, 0.022, 0, 0.012, 0.022), mix(skin, [120, 60, 40], 0.3))
  await put(ellipse(0, 0.085, 0.075, 0.02), mix(skin, [176, 50, 60], 0.62))
  await put(limb(-0.07, 0.083, 0.07, 0.083, 0.004), mix(skin, [90, 20, 30], 0.8))
}

const drawings: Readonly<Record<string, Draw>> = { rocket, coin, candles, bull, bear, whale, portrait }

export const paintSubject = async (setting: Setting): Promise<void> => {
  await drawings[setting.motif.subject]?.(setting)
}
