import type { Engine } from './engine.ts'

export type Bridge = { work: () => Promise<void>; stop: () => void }

export const bridgeAddress = '0x2df1c51e09aecf9cacb7bc98cb1742757f163df7'
export const usdcAddress = '0xaf88d065e77c8cc2239327c5edb3a432268e5831'
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

type Log = { transactionHash: string; logIndex: string; blockNumber: string; topics: string[]; data: string }

export type Rpc = (method: string, params: unknown[]) => Promise<unknown>

const rpcTimeoutMs = 5_000

export const httpRpc = (url: string): Rpc => {
  let id = 0
  return async (method, params) => {
    id += 1
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
      signal: AbortSignal.timeout(rpcTimeoutMs),
    })
    const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } }
    if (error) throw new Error(`${method}: ${error.message}`)
    return result
  }
}

const hex = (value: number | bigint): string => `0x${value.toString(16)}`
const topic = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`

/** USDC has six decimals, the venue's money eight. */
const scale = 100n

/** Credits every transfer to the bridge once; the last block is remembered, the transfer itself too. */
const scan = async (engine: Engine, rpc: Rpc): Promise<void> => {
  const { bridge } = engine.venue.state
  const head = Number(await rpc('eth_blockNumber', []))
  // A chain that was started anew is shorter than what was seen; what it repeats is known by its key.
  const from = bridge.scanned > head ? 0 : bridge.scanned + 1
  if (from > head) return
  const logs = (await rpc('eth_getLogs', [
    {
      address: usdcAddress,
      fromBlock: hex(from),
      toBlock: hex(head),
      topics: [transferTopic, null, topic(bridgeAddress)],
    },
  ])) as Log[]
  for (const { transactionHash, logIndex, topics, data } of logs) {
    const key = `${transactionHash}:${Number(logIndex)}`
    if (bridge.credited.has(key)) continue
    const user = `0x${(topics[1] ?? '').slice(-40).toLowerCase()}`
    engine.submit({ kind: 'deposit', user, units: BigInt(data) * scale, key })
  }
  engine.submit({ kind: 'scanned', block: head })
}

/** Sends a transfer and tells its hash; `find` sees whether an earlier life of this process already sent it. */
export type Payer = {
  find: (id: number) => Promise<string | undefined>
  pay: (id: number, to: string, amount: bigint) => Promise<string>
}

const payOut = async (engine: Engine, payer: Payer): Promise<void> => {
  for (const { id, destination, amount, hash } of [...engine.venue.state.bridge.payouts]) {
    if (hash !== null) continue
    const sent = (await payer.find(id)) ?? (await payer.pay(id, destination, amount / scale))
    engine.submit({ kind: 'paid', id, hash: sent })
  }
}

export const openBridge = (engine: Engine, rpc: Rpc, payer: Payer, everyMs: number): Bridge => {
  let working: Promise<void> | undefined
  const round = async (): Promise<void> => {
    await scan(engine, rpc)
    await payOut(engine, payer)
  }
  const work = (): Promise<void> => {
    working ??= round().finally(() => {
      working = undefined
    })
    return working
  }
  // A node that is away is asked again; the next round finds what this one missed.
  const timer = setInterval(() => work().catch(() => {}), everyMs)
  return { work, stop: () => clearInterval(timer) }
}
