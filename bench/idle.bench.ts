/**
 * P23: statements that idle gateways send to the database. The server logs every statement with its duration limit at 0;
 * the bench counts the lines of the gateways in a fixed time, so that transactions count with each of their statements.
 */
import { open, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { bearer, http, launch, newAgent } from '../test/harness/gateway.ts'
import { createEnvironment } from './support/environment.ts'
import { report } from './support/measure.ts'

/** Together a minute, so that one of them has the maintenance, which runs once a minute. */
const runs = 3
const countMs = 20_000
/** Starting gateways ensure schedules, load keys and take their first leases. */
const settleMs = 15_000
const many = 8

await using environment = await createEnvironment()
const url = await environment.newDatabase('idle')
const env = { ...(await environment.world()), DATABASE_URL: url, LEASE_MS: '5000' }
const admin = new pg.Client({ connectionString: url })
await admin.connect()
await using _closing = { [Symbol.asyncDispose]: () => admin.end() }
for (const setting of [
  `log_statement = 'all'`,
  `log_line_prefix = '%d %a |'`,
  `log_min_messages = 'warning'`,
])
  await admin.query(`alter system set ${setting}`)
await admin.query('select pg_reload_conf()')
const { rows } = await admin.query<{ data_directory: string }>('show data_directory')
const logFile = join(dirname(rows[0]!.data_directory), 'server.log')

/** The statements of gateways that the server logged in the time, by their first words. */
async function countStatements(): Promise<Map<string, number>> {
  const from = (await stat(logFile)).size
  await delay(countMs)
  const counts = new Map<string, number>()
  const file = await open(logFile)
  try {
    for await (const line of file.readLines({ start: from })) {
      const text = /^idle portico[^|]*\|LOG: +(?:statement|execute [^:]*): (.*)$/.exec(line)?.[1]
      if (text === undefined) continue
      const label = text.replace(/\s+/g, ' ').trim().slice(0, 70)
      counts.set(label, (counts.get(label) ?? 0) + 1)
    }
  } finally {
    await file.close()
  }
  return counts
}

type Sample = { all: number; heartbeats: number; bySource: Record<string, number> }
async function sample(): Promise<Sample> {
  const counts = await countStatements()
  const perSecond = (count: number) => Number(((count * 1_000) / countMs).toFixed(2))
  const sum = (entries: [string, number][]) =>
    perSecond(entries.reduce((total, [, count]) => total + count, 0))
  const sorted = [...counts].sort(([, one], [, other]) => other - one)
  return {
    all: sum(sorted),
    heartbeats: sum(sorted.filter(([label]) => label.startsWith('with renewed as'))),
    bySource: Object.fromEntries(sorted.slice(0, 30).map(([label, count]) => [label, perSecond(count)])),
  }
}
/** With the share of the maintenance. */
const meanOf = (ratios: number[]) =>
  Number((ratios.reduce((sum, each) => sum + each, 0) / ratios.length).toFixed(2))
const sampleRuns = async (): Promise<Sample[]> => {
  const samples: Sample[] = []
  for (let run = 0; run < runs; run++) samples.push(await sample())
  return samples
}

const startGateway = (n: number) =>
  launch({ env: { ...env, DATA_DIR: environment.newFolder(`gateway-${n}`) }, readyMsMax: 90_000 })
const gateways = [await startGateway(0)]
await using _gateways = {
  [Symbol.asyncDispose]: async () => void (await Promise.all(gateways.map((each) => each.kill()))),
}
// A user, so that the parts that ask for accounts find one.
const agent = await newAgent(gateways[0]!.url)
await http(`${gateways[0]!.url}/v1/wallets`, { headers: bearer(agent) })
await delay(settleMs)
const one = await sampleRuns()
for (let n = 1; n < many; n++) gateways.push(await startGateway(n))
await delay(settleMs)
const eight = await sampleRuns()

const ofOne = one.map(({ all }) => all)
const ofEight = eight.map(({ all, heartbeats }) => all - heartbeats)
report({
  id: 'P23',
  name: 'statements a second of one idle gateway',
  goal: '<= 3',
  unit: '/s',
  ratios: ofOne,
  met: (value) => value <= 3,
  annex: { with_maintenance: meanOf(ofOne), heartbeats: one[0]!.heartbeats, by_source: one[0]!.bySource },
})
report({
  id: 'P23a',
  name: `statements a second of ${many} idle gateways on one database, without heartbeats`,
  goal: '<= 10',
  unit: '/s',
  ratios: ofEight,
  met: (value) => value <= 10,
  annex: {
    with_maintenance: meanOf(ofEight),
    heartbeats: eight[0]!.heartbeats,
    by_source: eight[0]!.bySource,
  },
})
