import type { Motif } from './motif.ts'
import { between, noiseOf, octaves, type Random } from './random.ts'
import {
  around,
  type Color,
  circle,
  clamp,
  eachPixel,
  extent,
  fill,
  mix,
  type Raster,
  rectangle,
  smooth,
  whole,
} from './raster.ts'

/** Sky and ground of a picture. */

export type Palette = { high: Color; low: Color; light: Color; far: Color; near: Color }
export type Setting = { raster: Raster; motif: Motif; palette: Palette; random: Random; layers: number }

const palettes: Readonly<Record<Motif['time'], Palette>> = {
  dawn: {
    high: [66, 84, 150],
    low: [255, 196, 150],
    light: [255, 238, 200],
    far: [150, 136, 176],
    near: [44, 46, 80],
  },
  day: {
    high: [56, 124, 206],
    low: [204, 232, 246],
    light: [255, 250, 224],
    far: [134, 164, 182],
    near: [40, 92, 72],
  },
  dusk: {
    high: [44, 30, 92],
    low: [252, 128, 84],
    light: [255, 214, 128],
    far: [138, 72, 112],
    near: [34, 20, 50],
  },
  night: {
    high: [6, 10, 30],
    low: [36, 56, 104],
    light: [234, 238, 246],
    far: [38, 54, 94],
    near: [8, 12, 28],
  },
}

export const paletteOf = ({ time, tint, backdrop }: Motif, random: Random): Palette => {
  const base = backdrop === 'space' ? { ...palettes.night, low: [20, 18, 56] as const } : palettes[time]
  const shift: Color = [between(random, -10, 10), between(random, -10, 10), between(random, -10, 10)]
  const varied = (color: Color): Color => {
    const moved: Color = [color[0] + shift[0], color[1] + shift[1], color[2] + shift[2]]
    return tint ? mix(moved, tint, 0.38) : moved
  }
  return {
    high: varied(base.high),
    low: varied(base.low),
    light: base.light,
    far: varied(base.far),
    near: varied(base.near),
  }
}

const isDark = ({ time, backdrop }: Motif) => time === 'night' || backdrop === 'space'

export const horizonOf = (raster: Raster): number => extent(raster).h * 0.64

export const paintSky = async ({ raster, motif, palette, random, layers }: Setting): Promise<void> => {
  const { w, h } = extent(raster)
  const cloud = octaves(noiseOf(random), Math.min(6, 2 + Math.floor(layers / 2)))
  const [driftX, driftY] = [between(random, 0, 90), between(random, 0, 90)]
  const cover = motif.backdrop === 'space' ? 0.42 : isDark(motif) ? 0.62 : between(random, 0.5, 0.58)
  const cloudColor =
    motif.backdrop === 'space'
      ? mix(palette.low, [190, 90, 200], 0.55)
      : mix(palette.low, palette.light, 0.65)
  await eachPixel(raster, (x, y) => {
    const share = clamp(y / (motif.backdrop === 'space' ? h : h * 0.68))
    const sky = mix(palette.high, palette.low, share ** 1.35)
    const density = smooth(cover, cover + 0.22, cloud(driftX + x * 2.1, driftY + y * 4.2))
    return mix(sky, cloudColor, density * (motif.backdrop === 'space' ? 0.7 : 0.6 * (1 - share * 0.4)))
  })
  if (isDark(motif)) await paintStars(raster, random, 60 + layers * 25)
  const [cx, cy] = [
    w * between(random, 0.16, 0.84),
    h * between(random, 0.14, motif.time === 'day' ? 0.26 : 0.44),
  ]
  const radius = motif.time === 'day' ? 0.06 : between(random, 0.075, 0.12)
  const glow = (x: number, y: number): Color =>
    mix(palette.light, [255, 255, 255], 1 - Math.hypot(x - cx, y - cy))
  const halo = isDark(motif) ? 2.4 : 3.6
  await fill(raster, around(cx, cy, radius * halo * 2), circle(cx, cy, radius * halo * 0.8), glow, {
    opacity: isDark(motif) ? 0.22 : 0.4,
    soft: radius * halo * 0.8,
  })
  await fill(raster, around(cx, cy, radius * 1.1), circle(cx, cy, radius), palette.light)
  if (!isDark(motif)) return
  for (const [dx, dy, size] of [
    [-0.3, -0.2, 0.22],
    [0.3, 0.3, 0.3],
    [0.2, -0.45, 0.14],
  ] as const)
    await fill(
      raster,
      around(cx, cy, radius),
      circle(cx + dx * radius, cy + dy * radius, size * radius),
      mix(palette.light, [150, 156, 176], 0.45),
      { opacity: 0.6 },
    )
}

const paintStars = async (raster: Raster, random: Random, count: number): Promise<void> => {
  const { w, h } = extent(raster)
  for (let star = 0; star < count; star++) {
    const [x, y, size] = [between(random, 0, w), between(random, 0, h), between(random, 0.0008, 0.0028)]
    await fill(raster, around(x, y, size * 3), circle(x, y, size), [248, 248, 255], {
      opacity: between(random, 0.4, 1),
    })
  }
}

export const paintGround = async (setting: Setting): Promise<void> => {
  const { backdrop } = setting.motif
  if (backdrop === 'mountain') await paintRidges(setting)
  else if (backdrop === 'city') await paintCity(setting)
  else if (backdrop === 'ocean') await paintOcean(setting)
  else await paintPlanet(setting)
}

const paintRidges = async ({ raster, palette, random, layers, motif }: Setting): Promise<void> => {
  const { h } = extent(raster)
  const count = Math.min(8, 3 + Math.floor(layers / 2))
  const noise = noiseOf(random)
  for (let ridge = 0; ridge < count; ridge++) {
    const share = ridge / (count - 1)
    const line = octaves(noise, 5 - Math.round(share * 2))
    const [offset, frequency] = [between(random, 0, 200), 2.6 - share * 1.2]
    const level = h * (0.5 + share * 0.4)
    const rise = 0.42 * (1 - share * 0.72)
    const tops = Float32Array.from({ length: raster.width }, (_, column) => {
      const raw = line(offset + ((column + 0.5) / raster.scale) * frequency, ridge * 7.3)
      const peaked = 1 - Math.abs(2 * raw - 1)
      return level - rise * (peaked - 0.45) * 1.2
    })
    const top = (x: number) => tops[Math.floor(x * raster.scale)]!
    const color = mix(palette.far, palette.near, share)
    const snow = share < 0.34 && motif.time !== 'night'
    await fill(
      raster,
      { ...whole, top: level - rise },
      (x, y) => (top(x) - y) * 0.7,
      (x, y) => {
        const depth = y - top(x)
        const misty = mix(color, palette.low, 0.42 * (1 - share) * clamp(depth / 0.3))
        const steep = noise(offset + x * 22, y * 22) - 0.5
        const lit = mix(misty, palette.light, clamp(0.1 * (1 - share) + steep * 0.1))
        return snow && depth < 0.035 + steep * 0.06 && top(x) < level - rise * 0.36
          ? mix(lit, [250, 250, 255], 0.8)
          : lit
      },
    )
  }
}

const paintCity = async ({ raster, palette, random, layers, motif }: Setting): Promise<void> => {
  const { w, h } = extent(raster)
  const rows = Math.min(5, 3 + Math.floor(layers / 6))
  const isLit = motif.time === 'night' || motif.time === 'dusk'
  for (let row = 0; row < rows; row++) {
    const share = row / (rows - 1)
    const color = mix(mix(palette.far, palette.low, 0.25), palette.near, share)
    for (let x = between(random, -0.08, 0); x < w; ) {
      const width = between(random, 0.05, 0.13) * (0.75 + share * 0.5)
      const top = h * (0.6 + share * 0.12) - between(random, 0.03, 0.4) * (1 - share * 0.3)
      const right = x + width - 0.006
      const left = x
      await fill(
        raster,
        { left, top: top - 0.1, right, bottom: h },
        rectangle(left, top, right, h + 1),
        (_, y) => mix(color, palette.low, 0.3 * clamp((y - top) * (1 - share))),
      )
      if (random() < 0.3) {
        const mast = (left + right) / 2
        await fill(
          raster,
          around(mast, top, 0.1),
          rectangle(mast - 0.0025, top - 0.06, mast + 0.0025, top),
          color,
        )
      }
      await paintWindows({ raster, random, share, isLit }, { left, top, right, bottom: h })
      x += width
    }
  }
}

type Windows = { raster: Raster; random: Random; share: number; isLit: boolean }
const paintWindows = async (
  { raster, random, share, isLit }: Windows,
  { left, top, right, bottom }: { left: number; top: number; right: number; bottom: number },
): Promise<void> => {
  const [stepX, stepY] = [0.017 + share * 0.006, 0.024 + share * 0.008]
  for (let y = top + 0.018; y < bottom - stepY; y += stepY)
    for (let x = left + 0.01; x < right - 0.014; x += stepX) {
      const drawn = random()
      if (drawn > (isLit ? 0.46 : 0.3)) continue
      const color: Color = isLit ? (drawn < 0.08 ? [180, 220, 255] : [255, 214, 128]) : [226, 240, 250]
      await fill(
        raster,
        around(x + 0.005, y + 0.006, 0.02),
        rectangle(x, y, x + stepX * 0.52, y + stepY * 0.5),
        color,
        {
          opacity: isLit ? 0.9 : 0.35,
        },
      )
    }
}

const paintOcean = async ({ raster, palette, random, layers }: Setting): Promise<void> => {
  const { h } = extent(raster)
  const horizon = horizonOf(raster)
  const wave = octaves(noiseOf(random), Math.min(5, 2 + Math.floor(layers / 3)))
  const offset = between(random, 0, 99)
  await fill(
    raster,
    { ...whole, top: horizon - 0.01 },
    (_, y) => horizon - y,
    (x, y) => {
      const depth = clamp((y - horizon) / (h - horizon))
      const scale = 1 / (0.06 + depth * 0.9)
      const height = wave(offset + x * 3 * scale * 0.6, offset + y * 14 * scale * 0.5)
      const body = mix(mix(palette.low, palette.far, 0.5), palette.near, depth ** 0.6)
      const crest = smooth(0.56, 0.74, height) * (0.75 - depth * 0.35)
      return mix(body, mix(palette.low, palette.light, 0.5), crest * 0.8)
    },
  )
  await fill(
    raster,
    { ...whole, top: horizon - 0.01, bottom: horizon + 0.01 },
    rectangle(-1, horizon - 0.001, 99, horizon + 0.0015),
    palette.light,
    { opacity: 0.45 },
  )
}

const paintPlanet = async ({ raster, palette, random, layers }: Setting): Promise<void> => {
  const { w, h } = extent(raster)
  const radius = between(random, 0.3, 0.42)
  const [cx, cy] = [w * between(random, 0.25, 0.75), h - radius * 0.25]
  const bands = octaves(noiseOf(random), Math.min(6, 3 + Math.floor(layers / 3)))
  const [warm, cool]: [Color, Color] = [
    mix(palette.light, [220, 130, 80], 0.7),
    mix(palette.far, [70, 60, 150], 0.4),
  ]
  await fill(raster, around(cx, cy, radius * 1.6), circle(cx, cy, radius * 1.05), [150, 190, 255], {
    opacity: 0.3,
    soft: radius * 0.09,
  })
  await fill(raster, around(cx, cy, radius), circle(cx, cy, radius), (x, y) => {
    const band = bands(x * 2.5 + 9, y * 13 + bands(x * 6, y * 6) * 2)
    const light = clamp(0.62 - (x - cx + (y - cy)) / (radius * 2.2))
    return mix([6, 6, 18], mix(cool, warm, smooth(0.35, 0.65, band)), 0.15 + light * 0.85)
  })
}
