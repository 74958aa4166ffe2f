/** How much of its tables a request reads. */
import pg from 'pg'

type SentQuery = { text: string; values?: unknown[] }
type Plan = { 'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }] }

const literal = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return pg.escapeLiteral(`{${value.map((each) => `"${each}"`).join()}}`)
  return pg.escapeLiteral(value instanceof Date ? value.toISOString() : String(value))
}

/** The statements of a request, and the blocks that each of them reads under a generic plan. */
export async function blocksOf(pool: pg.Pool, request: (db: pg.Pool) => Promise<unknown>): Promise<number[]> {
  const sent: SentQuery[] = []
  const query = (each: SentQuery) => {
    sent.push(each)
    return pool.query(each)
  }
  await request({ query } as unknown as pg.Pool)
  const client = await pool.connect()
  try {
    await client.query('set plan_cache_mode = force_generic_plan')
    const blocks: number[] = []
    for (const { text, values = [] } of sent) {
      await client.query(`prepare request as ${text}`)
      const args = values.length > 0 ? `(${values.map(literal).join()})` : ''
      const { rows } = await client.query<Plan>(
        `explain (analyze, buffers, format json) execute request${args}`,
      )
      const plan = rows[0]!['QUERY PLAN'][0].Plan
      blocks.push(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'])
      await client.query('deallocate request')
    }
    return blocks
  } finally {
    client.release(true)
  }
}
