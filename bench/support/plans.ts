/** Records the statements of a pool: their durations, and afterwards their plans. */
import pg from 'pg'

type Statement = { text: string; values: unknown[] }
/** `blocks`: what the execution read, from memory or not. */
export type Plan = { text: string; lines: string[]; scans: string[]; blocks: number }
export type PlanLog = {
  clear(): void
  /** Milliseconds of each statement that matches. */
  durations(matching: RegExp): number[]
  /** A generic plan of each distinct statement since `clear`, executed and rolled back. */
  plans(on: pg.Pool): Promise<Plan[]>
}

const literal = (value: unknown): string => {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value))
    return pg.escapeLiteral(`{${value.map((each) => JSON.stringify(String(each))).join()}}`)
  return pg.escapeLiteral(value instanceof Date ? value.toISOString() : String(value))
}

async function planOf(client: pg.PoolClient, { text, values }: Statement): Promise<string[]> {
  await client.query('begin')
  try {
    await client.query('set local plan_cache_mode = force_generic_plan')
    await client.query(`prepare measured as ${text}`)
    const args = values.length > 0 ? `(${values.map(literal).join()})` : ''
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, buffers, costs off, timing off, summary off) execute measured${args}`,
    )
    return rows.map((row) => row['QUERY PLAN'])
  } catch (error) {
    return [`no plan: ${error instanceof Error ? error.message : String(error)}`]
  } finally {
    await client.query('rollback')
    await client.query('deallocate all')
  }
}

/** Of the first node, which includes those below it. */
function blocksOf(lines: readonly string[]): number {
  const [, counts = ''] =
    /Buffers: shared(.*)/.exec(lines.find((line) => line.includes('Buffers:')) ?? '') ?? []
  return [...counts.matchAll(/(?:hit|read)=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** `select function(...)`: its plan says nothing. */
const isCall = (text: string) => /^\s*select (\* from )?\w+\(/.test(text)

export function recordStatements(pool: pg.Pool): PlanLog {
  const statements = new Map<string, Statement>()
  let measured: { text: string; ms: number }[] = []
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>
  const recorded = async (...args: unknown[]): Promise<unknown> => {
    const [config] = args
    const startedMs = performance.now()
    try {
      return await query(...args)
    } finally {
      const { text, values = [] } = config as { text: string; values?: unknown[] }
      if (typeof text === 'string') {
        measured.push({ text, ms: performance.now() - startedMs })
        statements.set(text, { text, values })
      }
    }
  }
  pool.query = recorded as typeof pool.query
  return {
    clear() {
      statements.clear()
      measured = []
    },
    durations: (matching) => measured.filter(({ text }) => matching.test(text)).map(({ ms }) => ms),
    async plans(on) {
      const client = await on.connect()
      try {
        const found: Plan[] = []
        for (const statement of statements.values()) {
          if (isCall(statement.text)) continue
          const lines = await planOf(client, statement)
          const scans = lines.flatMap(
            (line) => /(?:Seq|Index|Index Only|Bitmap Heap) Scan (?:using \w+ )?on \w+/.exec(line)?.[0] ?? [],
          )
          const text = statement.text.replace(/\s+/g, ' ').trim()
          found.push({ text, lines, scans, blocks: blocksOf(lines) })
        }
        return found
      } finally {
        client.release(true)
      }
    },
  }
}
