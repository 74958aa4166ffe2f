import {
  around,
  type Color,
  circle,
  clamp,
  ellipse,
  fill,
  joined,
  limb,
  mix,
  placed,
  type Shape,
  smooth,
} from './raster.ts'
import { type Draw, standOf } from './stand.ts'

/** Animals, of ellipses and limbs that melt into each other. */

type Beast = {
  shape: Shape
  details: readonly { shape: Shape; color: Color }[]
  color: Color
  share: number
  level: number
}

const beast =
  (of: Beast): Draw =>
  async (setting) => {
    const { raster, palette, random, motif } = setting
    const { cx, cy, size } = standOf(setting, of.share, of.level)
    const turn = { flip: random() < 0.5 }
    const feetY = cy + size * 0.56
    if (motif.backdrop !== 'ocean')
      await fill(raster, around(cx, cy, size * 2), ellipse(cx, feetY, size * 0.75, size * 0.07), [8, 8, 16], {
        opacity: 0.42,
        soft: size * 0.05,
      })
    const base = mix(of.color, palette.near, 0.25)
    const shape = placed(of.shape, cx, cy, size, turn)
    await fill(raster, around(cx, cy, size * 1.6), shape, (x, y) => {
      const rim = smooth(-0.05 * size, 0, shape(x, y)) * clamp(0.7 - (y - cy) / size)
      const round = mix(base, [6, 6, 12], clamp(0.32 + ((y - cy) / size) * 0.7))
      return mix(round, palette.light, rim * 0.5)
    })
    for (const { shape: part, color } of of.details)
      await fill(raster, around(cx, cy, size * 1.6), placed(part, cx, cy, size, turn), color)
  }

export const bull = beast({
  color: [112, 62, 40],
  share: 0.46,
  level: 0.62,
  shape: joined(
    0.05,
    ellipse(-0.1, -0.05, 0.5, 0.25),
    ellipse(0.24, -0.16, 0.3, 0.28),
    ellipse(0.58, -0.02, 0.15, 0.2, 0.5),
    limb(-0.46, 0.05, -0.5, 0.55, 0.1, 0.05),
    limb(-0.28, 0.08, -0.26, 0.55, 0.09, 0.05),
    limb(0.24, 0.05, 0.2, 0.55, 0.09, 0.05),
    limb(0.4, 0.02, 0.46, 0.55, 0.08, 0.05),
    limb(-0.56, -0.14, -0.74, 0.12, 0.03, 0.015),
    limb(-0.74, 0.12, -0.72, 0.3, 0.015, 0.04),
  ),
  details: [
    {
      shape: joined(
        0.03,
        limb(0.5, -0.18, 0.66, -0.32, 0.045, 0.03),
        limb(0.66, -0.32, 0.84, -0.44, 0.03, 0.006),
      ),
      color: [240, 230, 206],
    },
    {
      shape: joined(
        0.03,
        limb(0.44, -0.2, 0.48, -0.36, 0.04, 0.028),
        limb(0.48, -0.36, 0.6, -0.5, 0.028, 0.006),
      ),
      color: [218, 206, 180],
    },
    { shape: ellipse(0.68, 0.12, 0.075, 0.06, 0.5), color: [196, 150, 126] },
    { shape: circle(0.6, -0.05, 0.018), color: [252, 240, 220] },
  ],
})

export const bear = beast({
  color: [92, 66, 52],
  share: 0.46,
  level: 0.6,
  shape: joined(
    0.06,
    ellipse(-0.12, -0.02, 0.5, 0.3),
    ellipse(0.2, -0.14, 0.28, 0.26),
    circle(0.5, -0.08, 0.18),
    ellipse(0.66, -0.02, 0.1, 0.07, 0.2),
    circle(0.4, -0.25, 0.065),
    circle(0.56, -0.25, 0.055),
    limb(-0.46, 0.1, -0.48, 0.52, 0.14, 0.1),
    limb(-0.2, 0.14, -0.16, 0.54, 0.12, 0.09),
    limb(0.18, 0.08, 0.16, 0.54, 0.13, 0.09),
    limb(0.36, 0.04, 0.42, 0.52, 0.11, 0.09),
  ),
  details: [
    { shape: ellipse(0.755, -0.04, 0.03, 0.024), color: [22, 16, 16] },
    { shape: circle(0.55, -0.13, 0.017), color: [250, 240, 226] },
    { shape: ellipse(0.4, -0.25, 0.03, 0.032), color: [166, 122, 100] },
  ],
})

export const whale = beast({
  color: [52, 92, 138],
  share: 0.48,
  level: 0.62,
  shape: joined(
    0.07,
    ellipse(0.12, 0, 0.58, 0.27, 0.05),
    limb(-0.3, 0.02, -0.76, -0.2, 0.17, 0.035),
    limb(-0.76, -0.2, -0.98, -0.34, 0.04, 0.02),
    limb(-0.76, -0.2, -0.92, -0.02, 0.04, 0.02),
    limb(0.16, 0.2, -0.06, 0.42, 0.075, 0.02),
  ),
  details: [
    { shape: ellipse(0.28, 0.15, 0.4, 0.1, -0.08), color: [196, 214, 226] },
    ...[0, 1, 2, 3].map((line) => ({
      shape: limb(0.02 + line * 0.06, 0.12 + line * 0.03, 0.6 - line * 0.04, 0.1 + line * 0.03, 0.004),
      color: [120, 150, 176] as const,
    })),
    { shape: circle(0.5, -0.02, 0.024), color: [236, 244, 250] },
    { shape: circle(0.505, -0.02, 0.013), color: [12, 16, 26] },
    {
      shape: joined(
        0.02,
        limb(0.24, -0.3, 0.2, -0.5, 0.018, 0.012),
        limb(0.2, -0.5, 0.06, -0.58, 0.018, 0.03),
        limb(0.22, -0.5, 0.38, -0.58, 0.018, 0.03),
      ),
      color: [214, 236, 248],
    },
  ],
})
