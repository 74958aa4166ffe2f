import type { Setting } from './backdrop.ts'
import { between } from './random.ts'
import { extent } from './raster.ts'

export type Draw = (setting: Setting) => Promise<void>

/** Centre and size: in the middle third, as large as the shorter side allows. */
export const standOf = ({ raster, random }: Setting, share: number, level = 0.54) => {
  const { w, h } = extent(raster)
  return {
    cx: w * between(random, 0.44, 0.56),
    cy: h * level,
    size: share * Math.min(1, Math.max(w, h) * 0.9),
  }
}
