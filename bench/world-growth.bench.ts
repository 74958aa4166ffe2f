/**
 * P14: growth of the local world under load: its files, its memory, and how long a chain does not answer while it is
 * saved. Transfers on four EVM chains, mints on Solana and orders at the venue, sent directly to the world, so that no
 * gateway slows them. BENCH=long: 8 minutes. An hour is extrapolated only for figures that still grow at the end.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ExchangeClient, HttpTransport } from '@nktkas/hyperliquid'
import { encodeFunctionData, erc20Abi, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { toBase58 } from '#world/solana/base58.ts'
import { startWorld } from '#world/world.ts'
import { createEnvironment, residentMibOf } from './support/environment.ts'
import { percentile, report } from './support/measure.ts'

const minutes = process.env.BENCH === 'long' ? 8 : 1
const loadMs = minutes * 60_000
/** Transactions a second, one block each. Within the long run the busy chain reaches the maximum that a node stores. */
const evmRates = { '1': 1, '8453': 26, '42161': 2, '137': 1 } as const
const solanaRate = 2
const venueRate = 2
const sampleMs = 10_000
const probeMs = 20
const usdc = {
  '1': '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  '8453': '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  '42161': '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
  '137': '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
} as const

type EvmId = keyof typeof evmRates
const evmIds = Object.keys(evmRates) as EvmId[]
const mib = (bytes: number) => bytes / 1_048_576

// The world runs in a process of its own, which does not keep this one alive while it ends.
const alive = setInterval(() => {}, 1_000)
await using cleanup = new AsyncDisposableStack()
cleanup.defer(() => clearInterval(alive))
const environment = cleanup.use(await createEnvironment())
const dataDir = environment.newFolder('world')
const world = cleanup.use(await startWorld({ dataDir, port: 0 }))
const endMs = performance.now() + loadMs
let failures = 0
let sent = 0

const post = async (url: string, body: unknown): Promise<Record<string, unknown>> => {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return (await answer.json()) as Record<string, unknown>
}

const atRate = async (perSecond: number, run: (n: number) => Promise<unknown>): Promise<void> => {
  const startedMs = performance.now()
  for (let n = 0; performance.now() < endMs; n++) {
    const dueMs = startedMs + (n * 1_000) / perSecond
    if (dueMs > performance.now()) await delay(dueMs - performance.now())
    await run(n).then(
      () => {
        sent += 1
      },
      (error: Error) => {
        if (failures === 0) console.log(`the first failure: ${error.message}`)
        failures += 1
      },
    )
  }
}

/** Recipients repeat, because a platform has a limited number of customers. */
const recipientOf = (n: number): Hex => `0x${(0x100000 + (n % 2_000)).toString(16).padStart(40, '0')}`

const sendTransfers = async (id: EvmId): Promise<void> => {
  const sender = privateKeyToAccount(generatePrivateKey())
  for (const [token, amount] of [
    ['native', '5'],
    ['USDC', '1000000'],
  ])
    await post(world.urls.faucet.concat('/fund'), { chain_id: id, address: sender.address, token, amount })
  await atRate(evmRates[id], async (nonce) => {
    const data = encodeFunctionData({
      abi: erc20Abi,
      functionName: 'transfer',
      args: [recipientOf(nonce), 1n],
    })
    const fees = { maxFeePerGas: 3_000_000_000n, maxPriorityFeePerGas: 1n }
    const raw = await sender.signTransaction({
      chainId: Number(id),
      type: 'eip1559',
      to: usdc[id],
      nonce,
      gas: 90_000n,
      data,
      ...fees,
    })
    const reply = await post(world.urls.evm[id], {
      jsonrpc: '2.0',
      id: 1,
      method: 'eth_sendRawTransaction',
      params: [raw],
    })
    if (reply.error) throw new Error(JSON.stringify(reply.error))
  })
}

const solanaUsers = Array.from({ length: 400 }, () => toBase58(randomBytes(32)))

const sendMints = () =>
  atRate(solanaRate, async (n) => {
    const reply = await post(`${world.urls.control}/faucet/fund`, {
      chain_id: '7565164',
      address: solanaUsers[n % solanaUsers.length],
      token: 'USDC',
      amount: '1',
    })
    if (reply.tx_hash === undefined) throw new Error(JSON.stringify(reply))
  })

const sendOrders = async (): Promise<void> => {
  const wallet = privateKeyToAccount(generatePrivateKey())
  const venue = `${world.urls.control}/venues/hyperliquid`
  await post(`${venue}/credit`, { user: wallet.address, amount: 100_000 })
  await post(`${venue}/price`, { coin: 'BTC', price: 100_000 })
  const url = world.urls.hyperliquid
  const exchange = new ExchangeClient({ transport: new HttpTransport({ apiUrl: url, rpcUrl: url }), wallet })
  await atRate(venueRate, async (n) => {
    const b = n % 2 === 0
    await exchange.order({
      orders: [
        { a: 0, b, p: b ? '104000' : '96000', s: '0.001', r: false, t: { limit: { tif: 'FrontendMarket' } } },
      ],
      grouping: 'na',
    })
  })
}

const isSaving = (id: EvmId): boolean => {
  try {
    return statSync(join(dataDir, `${id}.state.gz.draft`)).isFile()
  } catch {
    return false
  }
}

const pauses = { saving: [] as number[], otherwise: [] as number[] }
/** Duration of a small read, separately for saves in progress. */
const probeChain = async (id: EvmId): Promise<void> => {
  while (performance.now() < endMs) {
    await delay(probeMs)
    const before = isSaving(id)
    const askedMs = performance.now()
    await post(world.urls.evm[id], { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }).catch(() => {
      failures += 1
    })
    const ms = performance.now() - askedMs
    if (before || isSaving(id)) pauses.saving.push(ms)
    else pauses.otherwise.push(ms)
  }
}

const filesOf = (folder: string, prefix = ''): Map<string, number> => {
  const found = new Map<string, number>()
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && entry.name !== 'compile-cache')
      for (const [name, size] of filesOf(path, `${prefix}${entry.name}/`)) found.set(name, size)
    // A file may be replaced between the listing and the read.
    else if (entry.isFile())
      found.set(`${prefix}${entry.name}`, statSync(path, { throwIfNoEntry: false })?.size ?? 0)
  }
  return found
}

const processes = (): [string, number][] => {
  const read = (name: string) => Number(readFileSync(join(dataDir, name), 'utf8'))
  const pids = readdirSync(dataDir).filter((name) => name.endsWith('.pid'))
  return [
    ['world', read('world.lock')],
    ...pids.map((name): [string, number] => [name.slice(0, -4), read(name)]),
  ]
}

type Sample = { minute: number; resident: Record<string, number>; files: Map<string, number>; total: number }
const samples: Sample[] = []
const startedMs = performance.now()
const sample = () => {
  const resident = Object.fromEntries(processes().map(([name, pid]) => [name, residentMibOf(pid) ?? 0]))
  const total = Object.values(resident).reduce((sum, each) => sum + each, 0)
  const minute = (performance.now() - startedMs) / 60_000
  samples.push({ minute, resident, files: filesOf(dataDir), total })
  const shown = Object.entries(resident).map(([name, size]) => `${name} ${size.toFixed(0)}`)
  console.log(`${minute.toFixed(1)} min: ${total.toFixed(0)} MiB (${shown.join(', ')})`)
}

sample()
const sampler = setInterval(sample, sampleMs)
await Promise.all([...evmIds.map(sendTransfers), ...evmIds.map(probeChain), sendMints(), sendOrders()])
clearInterval(sampler)
sample()

/** The node's own pause without other requests: the longest answer while its state is dumped. */
const pauseOf = async (id: EvmId): Promise<number> => {
  const call = { jsonrpc: '2.0', id: 1, method: 'anvil_dumpState', params: [] }
  let isDone = false
  let longest = 0
  const probing = (async () => {
    while (!isDone) {
      const askedMs = performance.now()
      await post(world.urls.evm[id], { ...call, method: 'eth_chainId' })
      longest = Math.max(longest, performance.now() - askedMs)
    }
  })()
  const answer = await fetch(world.urls.evm[id], {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(call),
  })
  for await (const _ of answer.body ?? []);
  isDone = true
  await probing
  return longest
}
const ownPauses: number[] = []
for (let run = 0; run < 5; run++) ownPauses.push(await pauseOf('8453'))

const first = samples[0] as Sample
const last = samples.at(-1) as Sample
/** The growth of the last third of the run, extrapolated to an hour: a bound that is reached meanwhile flattens it. */
const inAnHour = (valueFor: (sample: Sample) => number): number => {
  const late = samples.filter(({ minute }) => minute >= (last.minute * 2) / 3)
  const from = late[0] as Sample
  const perMinute = (valueFor(last) - valueFor(from)) / Math.max(0.01, last.minute - from.minute)
  return valueFor(last) + Math.max(0, perMinute) * (60 - last.minute)
}

const largest = [...last.files].sort(([, a], [, b]) => b - a)
const files = largest.slice(0, 12).map(([name, size]) => `${name} ${mib(size).toFixed(1)}`)
const hourly = largest.map(([name]) => inAnHour(({ files: at }) => mib(at.get(name) ?? 0)))
report({
  id: 'P14',
  name: `largest file of the world after ${minutes} min of load, extrapolated to an hour`,
  goal: '<= 64 MiB',
  unit: 'MiB',
  ratios: [Math.max(...hourly)],
  met: (value) => value <= 64,
  annex: { transactions: sent, failures, largest_now_mib: files.join(', ') },
})
report({
  id: 'P14a',
  name: 'longest answer of the busy chain while its state is dumped, after the load',
  goal: '<= 200 ms',
  unit: 'ms',
  ratios: ownPauses,
  met: (value) => value <= 200,
  annex: {
    answers_while_saving: pauses.saving.length,
    longest_while_saving_ms: Math.max(0, ...pauses.saving),
    p99_while_saving_ms: pauses.saving.length > 0 ? percentile(pauses.saving, 0.99) : 0,
    p99_otherwise_ms: percentile(pauses.otherwise, 0.99),
    longest_otherwise_ms: Math.max(...pauses.otherwise),
  },
})
report({
  id: 'P14b',
  name: `resident memory of the world after ${minutes} min of load, extrapolated to an hour`,
  goal: '<= 900 MiB',
  unit: 'MiB',
  ratios: [inAnHour(({ total }) => total)],
  met: (value) => value <= 900,
  annex: {
    at_the_start_mib: first.total,
    now_mib: last.total,
    each_mib: Object.entries(last.resident)
      .map(([name, size]) => `${name} ${size.toFixed(0)}`)
      .join(', '),
  },
})
