import { fileURLToPath } from 'node:url'
import { renderAsync } from '@resvg/resvg-js'
import { chartSize, fontFamily } from './svg.ts'

/** Renders SVG as PNG, with a font that comes with the gateway, so that every machine draws alike. */

const fontFiles = [
  import.meta.resolve('@expo-google-fonts/ibm-plex-sans/400Regular/IBMPlexSans_400Regular.ttf'),
  import.meta.resolve('@expo-google-fonts/ibm-plex-sans/600SemiBold/IBMPlexSans_600SemiBold.ttf'),
].map((url) => fileURLToPath(url))

export async function renderPng(svg: string): Promise<Uint8Array> {
  const image = await renderAsync(svg, {
    font: { loadSystemFonts: false, fontFiles, defaultFontFamily: fontFamily },
    fitTo: { mode: 'width', value: chartSize.width },
  })
  return image.asPng()
}
