/**
 * P8: the first event of a chat, and what each piece of its answer costs, compared with a bare relay from a WebSocket to
 * events that stores nothing. And the memory of open streams.
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { type Agent, bearer, newAgent } from '../test/harness/gateway.ts'
import { type Answered, ask, hold } from './support/chat-client.ts'
import { creditTo } from './support/chat-credits.ts'
import { createEnvironment, residentMibOf, startServer } from './support/environment.ts'
import { median, percentile, report } from './support/measure.ts'

const runs = 5
const asksPerRun = 60
const burst = 2_000
const paced = { n: 200, everyMs: 10 }
const streams = 2_000
const streamUsers = 4
const settleMs = 10_000

console.log(
  JSON.stringify({
    section: 'Chats',
    about:
      'The stream of an answer, compared with a bare relay from a WebSocket to events that stores nothing. Pieces that come faster than they are stored share an event. `to_relay_and_commit` is the first event beside that of the relay and one commit of the same database.',
  }),
)
await using environment = await createEnvironment()
const databaseUrl = await environment.newDatabase('chat')
const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
await using _closing = { [Symbol.asyncDispose]: () => pool.end() }
await pool.query('create table bare (id uuid primary key, body jsonb, at timestamptz)')
await using upstream = await startServer('chunk-server.ts')
await using relay = await startServer('relay-server.ts', [upstream.url])
await using gateway = await startServer('chat-server.ts', [databaseUrl, upstream.url])

async function newUser(credits: number): Promise<Agent> {
  const agent = await newAgent(gateway.url)
  await creditTo(pool, { url: gateway.url, agent }, credits)
  return agent
}
const user = await newUser(100_000)
const query = (n: number, everyMs = 0) => JSON.stringify({ n, everyMs })
const ours = (asked: string) => ask({ url: gateway.url, headers: bearer(user) }, asked)
const raw = (asked: string) => ask({ url: relay.url }, asked)
const commit = async (): Promise<number> => {
  const startMs = performance.now()
  await pool.query({
    name: 'bare',
    text: 'insert into bare values ($1, $2, now())',
    values: [uuidv7(new Date(), systemRandom), '{"a":"1"}'],
  })
  return performance.now() - startMs
}

type Run = { meta: number[]; rawMeta: number[]; commit: number[]; burst: Both; paced: Both }
type Both = { ours: Answered; raw: Answered }

async function inTurn(asked: string): Promise<Both> {
  const both = { ours: await ours(asked), raw: await raw(asked) }
  if (both.ours.chunks !== both.raw.chunks)
    throw new Error(`${both.ours.chunks} of ${both.raw.chunks} pieces`)
  return both
}
async function measure(count: number): Promise<Run> {
  const run: Omit<Run, 'burst' | 'paced'> = { meta: [], rawMeta: [], commit: [] }
  for (let at = 0; at < count; at++) {
    const both = await inTurn(query(1))
    run.meta.push(both.ours.metaMs)
    run.rawMeta.push(both.raw.metaMs)
    run.commit.push(await commit())
  }
  return { ...run, burst: await inTurn(query(burst)), paced: await inTurn(query(paced.n, paced.everyMs)) }
}

await measure(200)
const found: Run[] = []
for (let run = 0; run < runs; run++) found.push(await measure(asksPerRun))

const all = (select: (run: Run) => number[]) => found.flatMap(select)
const perPieceMs = ({ totalMs, chunks }: Answered) => totalMs / chunks
report({
  id: 'P8',
  name: 'p50 from the request of a chat to its first event, with its commit',
  goal: '<= 3 ms',
  unit: 'ms',
  ratios: found.map(({ meta }) => median(meta)),
  met: (ms) => ms <= 3,
  annex: {
    p99_ms: percentile(
      all(({ meta }) => meta),
      0.99,
    ),
    relay_ms: median(all(({ rawMeta }) => rawMeta)),
    commit_ms: median(all((run) => run.commit)),
    to_relay_and_commit: median(
      found.map((run) => median(run.meta) / (median(run.rawMeta) + median(run.commit))),
    ),
  },
})
report({
  id: 'P8a',
  name: `time of an answer of ${burst} pieces at once, to a bare relay`,
  goal: '<= 1.5',
  ratios: found.map((run) => run.burst.ours.totalMs / run.burst.raw.totalMs),
  met: (ratio) => ratio <= 1.5,
  annex: {
    ours_us_per_piece: median(found.map((run) => perPieceMs(run.burst.ours))) * 1_000,
    relay_us_per_piece: median(found.map((run) => perPieceMs(run.burst.raw))) * 1_000,
  },
})
report({
  id: 'P8b',
  name: 'what each of these pieces costs beyond the relay',
  goal: '<= 0.15 ms',
  unit: 'ms',
  ratios: found.map((run) => perPieceMs(run.burst.ours) - perPieceMs(run.burst.raw)),
  met: (ms) => ms <= 0.15,
})
report({
  id: 'P8c',
  name: `time of an answer of ${paced.n} pieces, one each ${paced.everyMs} ms, to a bare relay`,
  goal: '<= 1.5',
  ratios: found.map((run) => run.paced.ours.totalMs / run.paced.raw.totalMs),
  met: (ratio) => ratio <= 1.5,
  annex: {
    ours_delay_ms: median(found.map((run) => run.paced.ours.delayMs)),
    relay_delay_ms: median(found.map((run) => run.paced.raw.delayMs)),
  },
})

const users: Agent[] = []
for (let at = 0; at < streamUsers; at++) users.push(await newUser(streams))
await delay(settleMs)
const idleMib = residentMibOf(gateway.pid) ?? Number.NaN
const held: Disposable[] = []
const hanging = query(1_000, 60_000)
const startMs = performance.now()
for (let at = 0; at < streams; at += 20)
  held.push(
    ...(await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        hold({ url: gateway.url, headers: bearer(users[(at + n) % streamUsers]!) }, hanging),
      ),
    )),
  )
const openedMs = performance.now() - startMs
await delay(settleMs)
const openMib = residentMibOf(gateway.pid) ?? Number.NaN
report({
  id: 'P8d',
  name: `resident memory of ${streams} open chats, above idle`,
  goal: '<= 64 MiB',
  unit: 'MiB',
  ratios: [openMib - idleMib],
  met: (mib) => mib <= 64,
  annex: { idle_mib: idleMib, open_mib: openMib, opened_in_ms: openedMs },
})
for (const each of held) each[Symbol.dispose]()
