import { paintGround, paintSky, paletteOf, type Setting } from './backdrop.ts'
import { motifOf } from './motif.ts'
import { encodePng } from './png.ts'
import { randomOf } from './random.ts'
import { createRaster } from './raster.ts'
import { applyStyle, blur } from './style.ts'
import { paintSubject } from './subject.ts'

/** A picture by prompt, seed, number, size and steps: the same five give the same bytes. */

export type PictureOrder = {
  prompt: string
  seed: number
  index: number
  width: number
  height: number
  steps: number
  /** Flagged pictures are blurred. */
  isChecked: boolean
}

export const paintPicture = async (order: PictureOrder): Promise<{ png: Buffer; flagged: boolean }> => {
  const { prompt, seed, index, width, height, steps, isChecked } = order
  const random = randomOf(prompt, seed, index, width, height)
  const motif = motifOf(prompt, random)
  const raster = createRaster(width, height)
  const palette = paletteOf(motif, random)
  // More steps add layers, and change none that is there.
  const setting: Setting = { raster, motif, palette, random, layers: steps }
  const part = (name: string): Setting => ({ ...setting, random: randomOf(prompt, seed, index, name) })
  await paintSky(part('sky'))
  await paintGround(part('ground'))
  await paintSubject(part('subject'))
  await applyStyle(raster, motif.style, randomOf(prompt, seed, index, 'style'))
  if (motif.flagged && isChecked) await blur(raster)
  return { png: await encodePng(raster), flagged: motif.flagged && isChecked }
}
