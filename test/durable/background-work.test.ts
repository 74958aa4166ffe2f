/** Background work: a shutdown ends it in order, and a long audit delays nothing. */
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import pg from 'pg'
import { faucetGrantAdmission } from '#features/wallets/faucet-grant.ts'
import { query } from '#store/query.ts'
import { dataFolder, eventually, http, launch } from '../harness/gateway.ts'
import { addUser, openInstance } from '../harness/instance.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { offlineSettings } from '../journeys/offline-gateway.ts'

/** An upstream that answers when the test says so. */
async function openHeldUpstream() {
  const held: ServerResponse[] = []
  const server = createServer((_request, response) => held.push(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => held.length,
    answer: () => {
      for (const response of held) response.end('{}')
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('a step that waits for an upstream at a shutdown gets its reply and is committed', async () => {
  await using own = await ownDatabase()
  await using upstream = await openHeldUpstream()
  const instance = await openInstance({ databaseUrl: own.url, urls: { faucet: upstream.url } })
  const { id, evm } = await addUser(instance)
  const { runtime, transactions, taskEngine, features } = instance
  runtime.start()
  const admission = faucetGrantAdmission([{ id, kind: 'evm', address: evm }], [{ id: '1', family: 'evm' }])
  const taskId = await transactions.run((tx) =>
    taskEngine.enqueue(tx, { userId: id, kind: features.wallets.faucetGrant!, input: {}, admission }),
  )
  await eventually(async () => (upstream.requests() > 0 ? true : undefined), 'the request of the step')
  const closed = instance[Symbol.asyncDispose]()
  await eventually(async () => {
    using slot = runtime.runner.reserve(1, id)
    return slot ? undefined : true
  }, 'the runner takes no tasks')
  upstream.answer()
  await closed
  const tasks = await query(own.database.pool, 'select status, outcome, attempts from task where id = $1', [
    taskId,
  ])
  assert.deepEqual(tasks, [{ status: 'completed', outcome: 'executed', attempts: 0 }])
})

/** A gateway without upstreams whose ledger audit waits for a lock until `unblock`. */
async function launchWithBlockedAudit(own: Awaited<ReturnType<typeof ownDatabase>>, dataDir: string) {
  const env = { ...offlineSettings, DATABASE_URL: own.url, DATA_DIR: dataDir, MAINTENANCE_MS: '1000' }
  const gateway = await launch({ env })
  const blocker = new pg.Client({ connectionString: own.url })
  await blocker.connect()
  await blocker.query('begin; lock table transfer in access exclusive mode')
  await eventually(async () => {
    const waiting = `select 1 from pg_locks where not granted and relation = 'transfer'::regclass`
    return (await query(own.database.pool, waiting, [])).length > 0 ? true : undefined
  }, 'the audit waits for the lock')
  return {
    gateway,
    unblock: () => blocker.end(),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  }
}

test('an audit that takes long delays no other maintenance', async () => {
  await using own = await ownDatabase()
  using folder = dataFolder()
  await using blocked = await launchWithBlockedAudit(own, folder.path)
  const { pool } = own.database
  await query(pool, `insert into spent_signature values (sha256('old'), now() - interval '1 day')`, [])
  await query(
    pool,
    `insert into idempotency (user_id, key, operation, body_hash, at)
       values (gen_random_uuid(), 'old', 'old', '', now() - interval '31 days')`,
    [],
  )
  const old = `select (select count(*) from spent_signature) + (select count(*) from idempotency) as count`
  const isDeleted = async () => {
    const [row] = await query<{ count: bigint }>(pool, old, [])
    return Number(row?.count) === 0 ? true : undefined
  }
  await eventually(isDeleted, 'expired rows are deleted').finally(blocked.unblock)
})

test('an audit that takes long does not keep the doors open at a shutdown', async () => {
  await using own = await ownDatabase()
  using folder = dataFolder()
  await using blocked = await launchWithBlockedAudit(own, folder.path)
  const { gateway } = blocked
  const stopped = gateway.stop()
  const isClosed = () =>
    http(`${gateway.url}/health`).then(
      () => undefined,
      () => true,
    )
  await eventually(isClosed, 'the doors are closed', 5_000).finally(blocked.unblock)
  assert.equal(await stopped, 0)
})
