/** The test files, the selection of a command line, and their order. */
import { existsSync, readdirSync } from 'node:fs'
import { matchesGlob, sep } from 'node:path'
import { root } from './environment.ts'

/** Tests beside a file that start processes or open a database run like journeys. */
const alone = /^(test\/(?!architecture\.test\.ts)|src\/(world|store)\/)/

/** Longest first: the run would wait for a long file that starts last. Files without a row are short. */
const longest = [
  /^test\/crash\/venue-points-/,
  /^test\/venue\//,
  /^test\/crash\//,
  /^test\/journeys\//,
  /^test\/proof\//,
  /^test\/(durable|chains|conformance)\//,
]

export const discover = (): string[] =>
  ['src', 'test']
    .filter((folder) => existsSync(`${root}/${folder}`))
    .flatMap((folder) =>
      readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' }).map(
        (name) => `${folder}/${name.split(sep).join('/')}`,
      ),
    )
    .filter((path) => path.endsWith('.test.ts'))
    .sort()

type Selection = { parts: readonly string[]; globs: readonly string[] }

export const choose = (files: readonly string[], { parts, globs }: Selection): string[] => {
  if (globs.length === 0 && parts.length === 0) return [...files]
  return files.filter(
    (file) => globs.some((glob) => matchesGlob(file, glob)) || parts.some((part) => file.includes(part)),
  )
}

/** Pure tests share a process; each of the others needs one of its own. */
export const isPure = (file: string): boolean => !alone.test(file)

/** Files that share a process, and with it their imports, their world and some a gateway. */
type Family = {
  files: RegExp
  /** Over how many processes they are spread. */
  parts?: number
  /** In a full run each of them takes as long as others together. */
  short?: true
  /** The processors that one process of the family keeps busy, with all that it starts. */
  processors: number
}
const families: readonly Family[] = [
  { files: /^test\/crash\/venue-points-/, short: true, processors: 1 },
  { files: /^test\/crash\/cancel-points-/, short: true, processors: 0.6 },
  { files: /^test\/crash\/order-points/, processors: 0.4 },
  { files: /^test\/crash\/(conservation|solver-kills|cancel-)/, parts: 6, processors: 0.5 },
  { files: /^test\/venue\//, parts: 6, processors: 0.3 },
  { files: /^test\/journeys\/(admin|npm-start|start)/, parts: 3, processors: 0.6 },
  { files: /^test\/journeys\//, parts: 5, processors: 0.4 },
  { files: /^test\/proof\/(?!fuzz|start|network)/, processors: 0.8 },
  { files: /^test\/conformance\/venue-/, processors: 0.4 },
  { files: /^test\/conformance\/world-(?!crash|realism)/, processors: 0.4 },
  { files: /^test\/chains\//, processors: 0.3 },
  { files: /^test\/(identity|edges)\/(?!fairness)/, processors: 0.4 },
  { files: /^test\/durable\//, processors: 0.2 },
  { files: /^(src\/(world|store)|test\/store)\//, processors: 0.6 },
]

export type Batch = { label: string; files: readonly string[]; processors: number }

const rankOf = (file: string): number => {
  const rank = longest.findIndex((each) => each.test(file))
  return rank < 0 ? longest.length : rank
}

/** The groups of one process each, in the order in which the processes start. */
export const batchesOf = (files: readonly string[], { short }: { short: boolean }): Batch[] => {
  const counts = new Map<Family, number>()
  const familyOf = (file: string) => families.find((each) => each.files.test(file) && (short || !each.short))
  const keyOf = (file: string) => {
    const family = familyOf(file)
    if (!family) return file
    const count = counts.get(family) ?? 0
    counts.set(family, count + 1)
    return `${family.files.source} ${count % (family.parts ?? 1)}`
  }
  const groups = Map.groupBy(
    files.toSorted((a, b) => rankOf(a) - rankOf(b)),
    keyOf,
  )
  return [...groups.values()].map((all) => ({
    label: all.length === 1 ? all[0]! : `${all[0]} and ${all.length - 1} more`,
    files: all,
    processors: familyOf(all[0]!)?.processors ?? 1,
  }))
}

/** Takes the first batch out of the queue that the free processors suffice for; an idle machine takes any. */
export function takeFitting(queue: Batch[], free: { processors: number; idle: boolean }): Batch | undefined {
  const index = free.idle ? 0 : queue.findIndex(({ processors }) => processors <= free.processors + 1e-9)
  return index < 0 ? undefined : queue.splice(index, 1)[0]
}
