import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { testDatabase } from '../harness/cluster.ts'
import {
  dataFolder,
  deadlineMs,
  eventually,
  type Gateway,
  http,
  launch,
  NotReady,
  upstreamsAt,
} from '../harness/gateway.ts'
import { type SentEvent, sentEvents } from '../harness/stream.ts'
import { createFundedPerson, type Person, type Positions, personOf, type TaskBody } from './users.ts'
import { base, worldOf } from './world.ts'

/** Longer than the deadline of a stop, which must not wait for this call. */
const waitSeconds = 90
/** Printed where the database or its tables are made. */
const isMaking = (line: string) => /^(Creating|Applying) /.test(line)
const worldLine = /^world\s+(\S+)/

const worldAt = (gateway: Gateway) =>
  worldOf(gateway.lines.flatMap((line) => worldLine.exec(line)?.[1] ?? [])[0] ?? '')

/** Starts with settings that must be rejected, and returns the output. */
async function refusedStart(env: Record<string, string>): Promise<string> {
  const started = launch({ env }).then(async (gateway) => {
    await gateway.stop()
    return assert.fail('the gateway started')
  })
  const refusal = await started.catch((error: unknown) => error)
  assert.ok(refusal instanceof NotReady, String(refusal))
  assert.equal(refusal.code, 1, refusal.message)
  assert.doesNotMatch(refusal.message, /\n\s+at /, 'an expected error shows no stack')
  return refusal.message
}

async function stopped(gateway: Gateway): Promise<void> {
  void gateway.stop()
  await eventually(async () => gateway.child.exitCode !== null, 'the end of the gateway', deadlineMs)
  assert.equal(gateway.child.exitCode, 0)
  // The log is another stream, whose last lines may be read after this one.
  const last = () => gateway.lines.findLast((line) => !line.startsWith('{'))
  await eventually(async () => last()?.startsWith('portico stopped'), 'the end is printed')
  assert.equal(last(), 'portico stopped')
}

describe('a gateway with everything of its own starts, stops and starts again', () => {
  const folder = dataFolder()
  const env = { DATA_DIR: folder.path }
  let gateway: Gateway
  let person: Person
  /** The same user, at the URL of the last start, with the token of an earlier one. */
  const reconnect = async () => {
    person = await personOf(gateway.url, person)
  }
  before(async () => {
    gateway = await launch({ env })
    person = await createFundedPerson(gateway.url)
  })
  after(async () => {
    await gateway?.stop()
    folder[Symbol.dispose]()
  })

  test('a first start prints docs, data folder and world, and the port of the ready line answers', async () => {
    const output = gateway.lines.join('\n')
    assert.match(output, new RegExp(`^docs\\s+${gateway.url}/docs$`, 'm'))
    assert.match(output, new RegExp(`^data\\s+${folder.path}$`, 'm'))
    assert.ok(gateway.lines.some(isMaking), output)
    assert.match(output, /^world\s+http:\/\/127\.0\.0\.1:\d+$/m)
    assert.equal(gateway.lines.at(-1), `portico ready ${gateway.url}`)
    assert.equal((await http(`${gateway.url}/health`)).status, 200)
  })

  test('a second start in the same data folder is rejected by name, and disturbs no running one', async () => {
    const output = await refusedStart(env)
    assert.match(output, /data folder .* is in use by process \d+/)
    assert.ok(output.includes(String(gateway.pid)))
    assert.equal((await person.call('GET /v1/user')).status, 200)
  })

  test('a port in use is rejected by name before anything else starts', async () => {
    using elsewhere = dataFolder()
    const { port } = new URL(gateway.url)
    const output = await refusedStart({ DATA_DIR: elsewhere.path, PORT: port })
    assert.match(output, new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is in use\\. Set PORT`))
    assert.doesNotMatch(output, /PostgreSQL|world/)
    const started = readdirSync(elsewhere.path).filter((name) => name !== 'compile-cache')
    assert.deepEqual(started, [])
  })

  test('SIGTERM ends an open stream and a waiting call in order, and the next start continues all tasks', async () => {
    const world = await worldAt(gateway)
    const done = (await person.deposit('100')).body
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    await world.fault(`evm:${base}`, { status: 503, methods: ['eth_sendRawTransaction'] })
    const waiting = person.deposit('50', { key: 'waits', query: `?wait=true&timeout=${waitSeconds}` })
    const received: SentEvent[] = []
    const headers = { authorization: `Bearer ${person.token}` }
    const listening = (async () => {
      const url = `${gateway.url}/v1/notifications/stream?after=0`
      for await (const sent of sentEvents(url, headers, AbortSignal.timeout(waitSeconds * 1_000)))
        received.push(sent)
      return 'ended'
    })()
    const signed = ({ event, data }: SentEvent) =>
      event === 'task.updated' && (data as { data: TaskBody }).data.state === 'signed'
    await eventually(
      async () => (received.filter(signed).length === 2 ? true : undefined),
      'the second one is signed',
    )

    const stopping = stopped(gateway)
    const [answer] = await Promise.all([waiting, stopping])
    assert.equal(await listening, 'ended')
    assert.deepEqual([answer.status, answer.body.status], [200, 'running'], JSON.stringify(answer.body))
    const { lines } = gateway
    assert.ok(lines.includes('portico stopping (SIGTERM)'), lines.join('\n'))

    gateway = await launch({ env })
    // Nothing is made any more; that no chain was seeded again is seen by the deposits below.
    assert.deepEqual(gateway.lines.filter(isMaking), [])
    const before = person
    await reconnect()
    assert.deepEqual([person.evm, person.solana], [before.evm, before.solana])
    const replay = await person.deposit('50', { key: 'waits' })
    assert.equal(replay.headers.get('idempotent-replayed'), 'true')
    assert.equal(replay.body.outcome, 'executed', JSON.stringify(replay.body))
    const { positions, history } = (await person.call<Positions>('GET /v1/earn/positions')).body
    assert.deepEqual(
      positions.map(({ amount_deposited_usdc, external_delta_shares }) => [
        amount_deposited_usdc,
        external_delta_shares,
      ]),
      [
        ['50', '0'],
        ['100', '0'],
      ],
    )
    assert.equal(history.length, 2)
    const again = await worldAt(gateway)
    assert.equal((await again.effects(person.evm)).length, 2)
    assert.equal(await again.usdcOf(person.evm), 9_850_000_000n)
  })

  test('killed right after a deposit was accepted, the next start completes it, and the chain has it once', async () => {
    const accepted = await person.deposit('25', { key: 'killed', query: '' })
    assert.equal(accepted.status, 200)
    await gateway.kill()
    gateway = await launch({ env })
    await reconnect()
    const done = await person.ended(accepted.body.task_id)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    const replay = await person.deposit('25', { key: 'killed' })
    assert.deepEqual(replay.body, await person.task(done.task_id))
    const world = await worldAt(gateway)
    const effects = await world.effects(person.evm)
    assert.deepEqual(
      effects.map(({ assets_units }) => assets_units),
      ['100000000', '50000000', '25000000'],
    )
    assert.equal(await world.usdcOf(person.evm), 9_825_000_000n)
    await stopped(gateway)
  })
})

describe('a start that cannot succeed states the reason', () => {
  test('every invalid setting is named at once, with its valid form', async () => {
    using folder = dataFolder()
    const output = await refusedStart({
      DATA_DIR: folder.path,
      PORT: 'eighty',
      LEASE_MS: '1',
      ENVIRONMENT: 'play',
      DATABASE_URL: 'mysql://nobody',
      EARN_VAULT_ADDRESS: '0x12',
    })
    for (const name of ['PORT', 'LEASE_MS', 'ENVIRONMENT', 'DATABASE_URL', 'EARN_VAULT_ADDRESS'])
      assert.match(output, new RegExp(`portico cannot start: ${name}: wants `))
  })

  test('production rejects every development setting, each by its name', async () => {
    using folder = dataFolder()
    const output = await refusedStart({ DATA_DIR: folder.path, ENVIRONMENT: 'production' })
    for (const name of [
      'ETHEREUM_RPC_URL',
      'BASE_RPC_URL',
      'ARBITRUM_RPC_URL',
      'POLYGON_RPC_URL',
      'SOLANA_RPC_URL',
      'PRICES_URL',
      'KEY_ENCRYPTION_KEYS',
      'SPONSOR_KEYS',
      'EARN_VAULT_ADDRESS',
      'DATABASE_URL',
      'DATABASE_DURABILITY',
      'BASE_URL',
    ])
      assert.match(output, new RegExp(`portico cannot start: ${name}: `), name)
    const world = await refusedStart({
      DATA_DIR: folder.path,
      ENVIRONMENT: 'production',
      KEY_ENCRYPTION_KEYS: 'world:WGPnDiVXA5FqDgKFTtzCCHUbLsZwLKZ9NN6TLvZ6hNA=',
      SPONSOR_KEYS: '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
      FINALITY: 'local',
      FAILPOINT: 'any@1',
    })
    for (const name of ['SPONSOR_KEYS', 'FINALITY', 'FAILPOINT'])
      assert.match(world, new RegExp(`portico cannot start: ${name}: `), name)
  })

  test('an unreachable database is reported in a sentence', async () => {
    using folder = dataFolder()
    const output = await refusedStart({
      DATA_DIR: folder.path,
      DATABASE_URL: 'postgresql://nobody:hunter2@127.0.0.1:9/none',
    })
    assert.match(output, /portico cannot start: .*database/i)
    assert.doesNotMatch(output, /hunter2/)
  })

  test('unreachable and silent upstreams prevent no start and no stop, and are reported by health', async () => {
    using folder = dataFolder()
    await using database = await testDatabase()
    /** The bytes of the requests, by their connections. */
    const unanswered = new Map<Socket, string>()
    const abandoned: string[] = []
    const silent = createServer((socket) => {
      socket.unref()
      socket.on('data', (data) => unanswered.set(socket, `${unanswered.get(socket) ?? ''}${data}`))
      socket.once('error', () => undefined)
      socket.once('close', () => {
        abandoned.push(unanswered.get(socket) ?? '')
        unanswered.delete(socket)
      })
    }).unref()
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const [quiet, dead] = [`http://127.0.0.1:${port}`, 'http://127.0.0.1:9']
    await using gateway = await launch({
      readyMsMax: deadlineMs,
      env: {
        DATA_DIR: folder.path,
        DATABASE_URL: database.url,
        ...upstreamsAt(quiet),
        FAUCET_URL: dead,
        ARBITRUM_RPC_URL: dead,
        POLYGON_RPC_URL: dead,
      },
    })
    // The first request to the venue has no answer and was not given up: the start did not wait for it.
    const isOfVenue = (request: string) => request.includes('"allMids"')
    assert.equal([...unanswered.values()].filter(isOfVenue).length, 1)
    assert.equal(abandoned.filter(isOfVenue).length, 0)
    const health = await eventually(async () => {
      const { status, body } = await http<{ status: string; checks: { upstreams: object } }>(
        `${gateway.url}/health`,
      )
      assert.equal(status, 200)
      return body.status === 'degraded' ? body : undefined
    }, 'health is degraded')
    const upstreams = Object.entries(health.checks.upstreams) as [string, { status: string }][]
    for (const name of ['hyperliquid', 'ethereum', 'base', 'arbitrum', 'polygon', 'solana'])
      assert.ok(
        upstreams.some(([known]) => known === name),
        `${name} is not among ${upstreams.map(([known]) => known)}`,
      )
    assert.deepEqual(
      upstreams.filter(([, { status }]) => status === 'ok'),
      [],
    )
    const earn = await http<Record<string, unknown>>(`${gateway.url}/v1/earn`)
    assert.deepEqual([earn.status, earn.body.code], [503, 'unavailable'])
    await stopped(gateway)
  })
})
