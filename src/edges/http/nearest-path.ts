import { alternatives, editDistance } from '#kernel/contract/nearest-names.ts'
import type { Documented } from './openapi.ts'

/** These bounds of the search make a hostile path cost little more than reading it. */
const pathLengthMax = 128
const segmentsMax = 8
const segmentLengthMax = 32
const suggestionsMax = 3

/** The most edits of a whole path; a missing or additional segment counts as two. */
const costMax = 3
const segmentCost = 2
const wrongSegment = costMax + 1

type Route = { method: string; path: string; segments: string[] }
type Compare = (sent: string, wanted: string) => number

const segmentsOf = (path: string): string[] => path.split('/').filter((segment) => segment !== '')
const isParameter = (segment: string): boolean => segment.startsWith('{')

/** Each pair of segments is compared once, because most routes share their segments. */
function comparison(): Compare {
  const known = new Map<string, number>()
  return (sent, wanted) => {
    if (sent === wanted) return 0
    // A parameter matches any text, but a literal that matches is better.
    if (isParameter(wanted)) return 0.5
    if (sent.length > segmentLengthMax) return wrongSegment
    const pair = `${sent}/${wanted}`
    const cost = known.get(pair) ?? editDistance(sent, wanted, editsMax(wanted)) ?? wrongSegment
    known.set(pair, cost)
    return cost
  }
}

const editsMax = ({ length }: string): number => (length <= 3 ? 1 : length <= 5 ? 2 : costMax)

function distance(sent: readonly string[], wanted: readonly string[], compare: Compare): number {
  let last = wanted.map((_, at) => (at + 1) * segmentCost)
  for (const [i, segment] of sent.entries()) {
    const row: number[] = []
    for (const [j, other] of wanted.entries()) {
      const diagonal = j === 0 ? i * segmentCost : last[j - 1]!
      const left = j === 0 ? (i + 1) * segmentCost : row[j - 1]!
      row.push(Math.min(diagonal + compare(segment, other), last[j]! + segmentCost, left + segmentCost))
    }
    last = row
  }
  return last.at(-1) ?? sent.length * segmentCost
}

export type PathHints = {
  nearest(method: string, url: string): string
  /**
   * Returns the operations that change something one segment below a path: for the path of a task, for example, the
   * POST to `/cancel` below it.
   */
  changesBelow(url: string): string[]
}

/**
 * Creates hints for unknown paths, which name published paths only. `signIn` says why this gateway has nothing below
 * `/oauth`; it is undefined if people can sign in.
 */
export function pathHints(
  operations: readonly Documented[],
  { signIn }: { signIn?: string | undefined } = {},
): PathHints {
  const routes: Route[] = operations.map(({ entry: { method, path } }) => ({
    method,
    path,
    segments: segmentsOf(path),
  }))
  const absent = 'There is no such path'
  const listed = `${absent}; /openapi.json lists every path`
  const nearest = (method: string, url: string): string => {
    const sent = sentSegments(url)
    if (sent.length === 0) return listed
    if (signIn !== undefined && sent[0] === 'oauth') return `${absent}: ${signIn}`
    const compare = comparison()
    let best: Route[] = []
    let bestCost = costMax
    for (const route of routes) {
      const cost = distance(sent, route.segments, compare)
      if (cost > bestCost) continue
      best = cost < bestCost ? [route] : [...best, route]
      bestCost = cost
    }
    const paths = new Set(best.map((route) => route.path))
    if (best.length === 0 || paths.size > suggestionsMax) return listed
    const same = best.filter((route) => route.method === method)
    const shown = (same.length > 0 ? same : best).map((route) => `${route.method} ${route.path}`)
    return `${absent}; did you mean ${alternatives(shown.slice(0, suggestionsMax))}?`
  }
  const changesBelow = (url: string): string[] => {
    const sent = sentSegments(url)
    return routes
      .filter(({ method, segments }) => method !== 'GET' && isBelow(sent, segments))
      .map(({ method, path }) => `${method} ${path}`)
      .slice(0, suggestionsMax)
  }
  return { nearest, changesBelow }
}

/** Returns the segments of a path; the list is empty if the path exceeds the bounds of the search. */
function sentSegments(url: string): string[] {
  const path = url.split('?', 1)[0] ?? url
  const segments = path.length > pathLengthMax ? [] : segmentsOf(path.toLowerCase())
  return segments.length > segmentsMax ? [] : segments
}

const isBelow = (sent: readonly string[], wanted: readonly string[]): boolean =>
  sent.length > 0 &&
  wanted.length === sent.length + 1 &&
  sent.every((segment, at) => segment === wanted[at] || isParameter(wanted[at] ?? ''))
