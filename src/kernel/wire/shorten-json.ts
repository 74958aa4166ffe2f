import { isRecord, type Json } from './json.ts'

const bytesMax = 16 * 1_024
const textMax = 2_000
const listLengths = [50, 20, 8, 3, 1]

const bytesOf = (value: Json): number => Buffer.byteLength(JSON.stringify(value))

/** Cuts long lists and texts, and says how many entries are left out; numbers and other values stay as they are. */
export function shorten(value: Json, max = bytesMax): Json {
  if (bytesOf(value) <= max) return value
  for (const length of listLengths) {
    const cut = cutLists(value, length)
    if (bytesOf(cut) <= max) return cut
  }
  return { omitted: 'everything', bytes: bytesOf(value) }
}

function cutLists(value: Json, length: number): Json {
  if (Array.isArray(value)) {
    const shown = value.slice(0, length).map((each) => cutLists(each, length))
    return value.length > length ? [...shown, { omitted: value.length - length }] : shown
  }
  if (typeof value === 'string') return value.length > textMax ? `${value.slice(0, textMax)}…` : value
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, cutLists(each as Json, length)]),
  )
}
