/** A browser reaches loopback too: permissions of a page of another origin at the ports of the world. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startWorld, type World } from '#world/world.ts'

let dataDir = ''
let world: World

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'portico-doors-'))
  // The runner of the tests names a folder for compiled code, and the world then creates none.
  delete process.env.NODE_COMPILE_CACHE
  world = await startWorld({ dataDir, port: 0 })
})

after(async () => {
  await world?.[Symbol.asyncDispose]()
  await rm(dataDir, { recursive: true, force: true })
})

type Sent = { method?: string; path?: string; headers?: Record<string, string | string[]>; body?: unknown }
type Answer = { status: number; headers: NodeJS.Dict<string | string[]>; text: string }

const send = (url: string, { method = 'POST', path = '/', headers = {}, body }: Sent) =>
  new Promise<Answer>((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
    const outgoing = request({ hostname, port, path, method, headers }, (reply) => {
      let received = ''
      reply.on('data', (chunk: Buffer) => {
        received += chunk.toString()
      })
      reply.once('end', () =>
        resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text: received }),
      )
    })
    outgoing.once('upgrade', (reply, socket) => {
      socket.destroy()
      resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text: '' })
    })
    outgoing.once('error', reject)
    outgoing.end(text)
  })

const ports = (): [string, string][] => [
  ...Object.entries(world.urls.evm),
  ...(['solana', 'hyperliquid', 'prices', 'control'] as const).map((name): [string, string] => [
    name,
    world.urls[name],
  ]),
]
const json = { 'content-type': 'application/json' }
const chainId = { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }

test('no port answers to another host name or to a page of another origin', async () => {
  for (const [name, url] of ports()) {
    const { host } = new URL(url)
    const foreign: Record<string, string | string[]>[] = [
      { host: 'attacker.example' },
      { host, origin: 'https://attacker.example' },
      { host, origin: 'http://127.0.0.1.attacker.example' },
      { host, origin: 'null' },
      { host: `${host}.attacker.example` },
    ]
    for (const headers of foreign) {
      const { status } = await send(url, { headers: { ...json, ...headers }, body: chainId })
      assert.equal(status, 403, `${name} ${JSON.stringify(headers)}`)
    }
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const key = { 'sec-websocket-key': Buffer.alloc(16).toString('base64') }
    const socket = { ...upgrade, ...key, host, origin: 'https://attacker.example' }
    const path = name === 'hyperliquid' ? '/ws' : '/'
    assert.equal((await send(url, { method: 'GET', path, headers: socket })).status, 403, name)
  }
})

test('a page of this machine may read a chain, and no answer is open to every origin', async () => {
  const url = world.urls.evm['1']
  const { host } = new URL(url)
  const plain = await send(url, { headers: { ...json, host }, body: chainId })
  assert.equal(plain.status, 200)
  assert.equal(plain.headers['access-control-allow-origin'], undefined)
  const origin = 'http://localhost:3000'
  const local = await send(url, { headers: { ...json, host, origin }, body: chainId })
  assert.deepEqual([local.status, local.headers['access-control-allow-origin']], [200, origin])
  const asked = { host, origin, 'access-control-request-headers': 'content-type' }
  assert.equal((await send(url, { method: 'OPTIONS', headers: asked })).status, 204)
})

test('a chain cannot be made to reach another machine, in any spelling of the method', async () => {
  const url = world.urls.evm['8453']
  const forking = { forking: { jsonRpcUrl: 'http://127.0.0.1:1/internal' } }
  const call = (method: string, params: unknown[]) => ({ jsonrpc: '2.0', id: 1, method, params })
  const bodies = [
    call('anvil_reset', [forking]),
    call('hardhat_reset', [forking]),
    call('anvil_setRpcUrl', ['http://127.0.0.1:1']),
    [chainId, call('anvil_reset', [forking])],
    JSON.stringify(call('anvil_reset', [forking])).replace('anvil_reset', 'anvil\\u005freset'),
  ]
  for (const body of bodies) assert.equal((await send(url, { headers: json, body })).status, 403)
  const head = await send(url, { headers: json, body: { ...chainId, method: 'eth_blockNumber' } })
  assert.ok(Number((JSON.parse(head.text) as { result: string }).result) > 0, 'the chain is unchanged')
})

test("the world's own routes of Solana are not for clients, and its files are closed to other accounts", async () => {
  const { status } = await send(world.urls.solana, {
    path: '/mint',
    headers: json,
    body: { address: 'Sysvar1111111111111111111111111111111111111', symbol: 'native', amount_units: '1' },
  })
  assert.equal(status, 403)
  for (const name of ['compile-cache', 'world.json', 'solana', '8453.state.gz'])
    assert.equal((await stat(join(dataDir, name))).mode & 0o077, 0, name)
  assert.ok((await readdir(join(dataDir, 'compile-cache'))).length > 0, 'compiled code is cached here')
})

test('a world that starts only a part has the ports of the others, which reject connections until they start', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'portico-part-'))
  try {
    await using part = await startWorld({ dataDir: folder, port: 0, only: ['8453'] })
    const running = async () => {
      const { text } = await send(part.urls.control, { method: 'GET' })
      const { running: all } = JSON.parse(text) as { running: Record<string, boolean> }
      return Object.keys(all).filter((name) => all[name])
    }
    assert.deepEqual(await running(), ['8453'])
    const ask = { headers: json, body: { ...chainId, method: 'eth_blockNumber' } }
    assert.equal((await send(part.urls.evm['8453'], ask)).status, 200)
    await assert.rejects(send(part.urls.evm['137'], ask), 'no server answers')
    const { status } = await send(part.urls.control, { path: '/chains/137/start', headers: json, body: {} })
    assert.equal(status, 200)
    assert.equal((await send(part.urls.evm['137'], ask)).status, 200)
    assert.deepEqual((await running()).sort(), ['137', '8453'])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('no process of the world opens an inspector on a signal', async () => {
  const pids = [await readFile(join(dataDir, 'world.lock'), 'utf8')]
  for (const name of ['solana.pid', 'hyperliquid.pid']) pids.push(await readFile(join(dataDir, name), 'utf8'))
  for (const pid of pids) process.kill(Number(pid), 'SIGUSR1')
  await assert.rejects(fetch('http://127.0.0.1:9229/json/version'), /fetch failed/)
  const head = await send(world.urls.solana, { headers: json, body: { ...chainId, method: 'getSlot' } })
  assert.equal(head.status, 200)
})

/**
 * The listening address of a process, as the system lists it: the address in hex, its bytes in reverse, and the port.
 */
const listeningOf = async (pid: string): Promise<{ host: string; port: number }[]> => {
  const names = await readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')))
  const rows = (await readFile(`/proc/${pid}/net/tcp`, 'utf8')).trim().split('\n').slice(1)
  return rows.flatMap((row) => {
    const [, local = '', , state, , , , , , inode] = row.trim().split(/\s+/)
    if (state !== '0A' || !links.includes(`socket:[${inode}]`)) return []
    const [address = '', port = ''] = local.split(':')
    const host = [...Buffer.from(address, 'hex')].reverse().join('.')
    return [{ host, port: Number.parseInt(port, 16) }]
  })
}

test('a node itself listens where no page can find it', { skip: process.platform !== 'linux' }, async () => {
  const hosts = new Set<string>()
  for (const id of Object.keys(world.urls.evm)) {
    const endpoints = await listeningOf(await readFile(join(dataDir, `${id}.pid`), 'utf8'))
    const [endpoint] = endpoints
    assert.ok(endpoint, `chain ${id}`)
    for (const { host } of endpoints) {
      assert.match(host, /^127\./)
      assert.notEqual(host, '127.0.0.1')
    }
    hosts.add(endpoint.host)
  }
  assert.equal(hosts.size, 4)
})
