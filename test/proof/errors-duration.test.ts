/** How soon operations fail without the database, and work again with it. */
import { after, before, test } from 'node:test'
import { testDatabase } from '../harness/cluster.ts'
import { type Agent, bearer, dataFolder, type Gateway, http, launch, newAgent } from '../harness/gateway.ts'
import { type DatabaseProxy, databaseProxy } from './support/database-proxy.ts'
import { createHttpClient, type HttpClient } from './support/http-client.ts'
import { type IdentityRecords, openIdentityRecords } from './support/identity-records.ts'
import { createMoneyAudit } from './support/money-audit.ts'
import { unlimitedRates } from './support/unlimited.ts'
import { assertUnreachableDatabase } from './support/unreachable-database.ts'

const parts = new AsyncDisposableStack()
let gateway: Gateway
let proxy: DatabaseProxy
let client: HttpClient
let rows: IdentityRecords
let agent: Agent
let userId: string
let open: { task_id: string; position_id: string }

before(async () => {
  const folder = parts.use(dataFolder())
  const database = parts.use(await testDatabase())
  proxy = parts.use(await databaseProxy(database.url))
  gateway = parts.use(
    await launch({ env: { ...unlimitedRates, DATA_DIR: folder.path, DATABASE_URL: proxy.url } }),
  )
  const world = gateway.lines.find((line) => line.startsWith('world '))!.split(/\s+/)[1]!
  client = parts.use(createHttpClient(gateway.url))
  rows = parts.use(await openIdentityRecords(database.url))
  agent = await newAgent(gateway.url)
  userId = (await http<{ user_id: string }>(`${gateway.url}/v1/user`, { headers: bearer(agent) })).body
    .user_id
  open = await (await createMoneyAudit({ url: gateway.url, world }, agent)).start()
})
after(() => parts.disposeAsync())

test('an unreachable database is reported within five seconds, and two seconds after it is back all work', () =>
  assertUnreachableDatabase(
    { client, proxy, rows, agent, userId, open },
    { answer: 5_000, degraded: 3_000, recovered: 2_000, deposited: 5_000 },
  ))
