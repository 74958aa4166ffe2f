import { type Finding, isOurs, ownPart, roomOf, targetOf } from './import-rules.ts'
import type { Source } from './source.ts'

type Graph = ReadonlyMap<string, ReadonlyMap<string, Origin>>
/** The import behind an edge of the graph. */
type Origin = { path: string; line: number }

/** Imports between files of src, or between its parts: values, types and dynamic imports alike. */
const importGraph = (files: readonly Source[], nodeOf: (path: string) => string): Graph => {
  const graph = new Map<string, Map<string, Origin>>()
  for (const { path, imports } of files) {
    const from = nodeOf(roomOf(path))
    const targets = graph.get(from) ?? new Map<string, Origin>()
    graph.set(from, targets)
    for (const { specifier, line } of imports) {
      const target = specifier && /^[.#]/.test(specifier) && nodeOf(targetOf(roomOf(path), specifier))
      if (target && target !== from && !targets.has(target)) targets.set(target, { path, line })
    }
  }
  return graph
}

/** The shortest path along the edges from `start` back to itself. */
const shortestCircle = (graph: Graph, start: string): string[] | undefined => {
  const ways: string[][] = [[start]]
  const reached = new Set<string>()
  for (const way of ways)
    for (const target of graph.get(way.at(-1) ?? '')?.keys() ?? []) {
      if (target === start) return [...way, target]
      if (reached.has(target)) continue
      reached.add(target)
      ways.push([...way, target])
    }
  return undefined
}

const circlesOf = (graph: Graph): Finding[] => {
  const found = new Map<string, Finding>()
  for (const start of graph.keys()) {
    const circle = shortestCircle(graph, start)
    const origin = circle && graph.get(start)?.get(circle[1] ?? '')
    if (!origin) continue
    const key = [...new Set(circle)].sort().join(' ')
    const says = `imports run in a circle: ${circle.join(' -> ')}`
    if (!found.has(key)) found.set(key, { rule: 'noCircles', ...origin, says })
  }
  return [...found.values()]
}

/** Neither the files of src nor its parts import each other in a circle, types included. Nothing imports a test. */
export const circleFindings = (sources: readonly Source[]): Finding[] => {
  const files = sources.filter(({ path }) => isOurs(path) && !path.endsWith('.test.ts'))
  return [
    ...circlesOf(importGraph(files, (path) => path)),
    ...circlesOf(importGraph(files, (path) => ownPart(path) ?? path)),
  ]
}

/** Sets of files by path: the bad ones contain a circle, the good ones none. */
export const circleFixtures: { bad: Record<string, string>[]; good: Record<string, string>[] } = {
  bad: [
    {
      'src/kernel/a.ts': `import { b } from './b.ts'`,
      'src/kernel/b.ts': `import type { A } from './a.ts'`,
    },
    {
      'src/kernel/a.ts': `import type { B } from './b.ts'`,
      'src/kernel/b.ts': `export type { C } from './c.ts'`,
      'src/kernel/c.ts': `import { type A } from '#kernel/a.ts'`,
    },
    {
      'src/kernel/a.ts': `type B = import('./b.ts').B`,
      'src/kernel/b.ts': `const a = await import('./a.ts')`,
    },
    {
      'src/features/perp/a.ts': `import type { B } from '#features/earn/b.ts'`,
      'src/features/earn/b.ts': 'export type B = string',
      'src/features/earn/c.ts': `import type { D } from '#features/perp/d.ts'`,
      'src/features/perp/d.ts': 'export type D = string',
    },
  ],
  good: [
    {
      'src/kernel/a.ts': `import { b } from './b.ts'\nimport { c } from './c.ts'\nimport { sha256 } from 'node:crypto'`,
      'src/kernel/b.ts': `import type { C } from './c.ts'\n// import { a } from './a.ts'`,
      'src/kernel/c.ts': 'export const c = 1',
      'src/kernel/c.test.ts': `import { a } from './a.ts'`,
    },
  ],
}
