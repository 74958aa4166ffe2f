import type { Engine } from './engine.ts'
import type { Payout, PayoutAttempt } from './state.ts'

export type Bridge = { runOnce: () => Promise<void>; stop: () => void }

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

/** Blocks that are read again because they may have changed: by a reorganisation or after a crash. */
const changedBlocksMax = 128

const hex = (value: number | bigint): string => `0x${value.toString(16)}`
const topic = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`

/** USDC has six decimals, the venue's money eight. */
const scale = 100n

/** Position within its transaction: it does not change when the transaction is mined again in another block. */
const keyedLogs = (logs: readonly Log[]): { log: Log; key: string }[] => {
  const counts = new Map<string, number>()
  return logs.map((log) => {
    const place = counts.get(log.transactionHash) ?? 0
    counts.set(log.transactionHash, place + 1)
    return { log, key: `${log.transactionHash}#${place}` }
  })
}

/** Credits every transfer to the bridge once; the last block and the transfer are stored. */
const scan = async (engine: Engine, rpc: Rpc): Promise<void> => {
  const { bridge } = engine.venue.state
  const head = Number(await rpc('eth_blockNumber', []))
  // A chain that was reset is shorter than the stored block; transfers that repeat are known by their key.
  if (bridge.scanned === head) return
  const from = bridge.scanned > head ? 0 : Math.max(0, bridge.scanned + 1 - changedBlocksMax)
  const logs = (await rpc('eth_getLogs', [
    {
      address: usdcAddress,
      fromBlock: hex(from),
      toBlock: hex(head),
      topics: [transferTopic, null, topic(bridgeAddress)],
    },
  ])) as Log[]
  for (const { log, key } of keyedLogs(logs)) {
    const { transactionHash, logIndex, topics, data } = log
    // The second form was written by an earlier version.
    if (bridge.credited.has(key) || bridge.credited.has(`${transactionHash}:${Number(logIndex)}`)) continue
    const user = `0x${(topics[1] ?? '').slice(-40).toLowerCase()}`
    engine.submit({ kind: 'deposit', user, units: BigInt(data) * scale, key })
  }
  engine.submit({ kind: 'scanned', block: head })
}

export type PayoutSender = {
  /** A payment of an earlier version, which stored no attempt. */
  find: (id: number) => Promise<string | undefined>
  sign: (id: number, to: string, amount: bigint) => Promise<PayoutAttempt>
  /** Sends what is not mined yet. False when another transaction has used a nonce of the attempt: it cannot land. */
  confirm: (attempt: PayoutAttempt) => Promise<boolean>
}

const signOnce = async (
  engine: Engine,
  payoutSender: PayoutSender,
  { id, destination, amount }: Payout,
): Promise<PayoutAttempt> => {
  const attempt = await payoutSender.sign(id, destination, amount / scale)
  engine.submit({ kind: 'paying', id, attempt })
  await new Promise<void>((resolve) => engine.afterPersist(resolve))
  return attempt
}

const payOut = async (engine: Engine, payoutSender: PayoutSender): Promise<void> => {
  for (const payout of [...engine.venue.state.bridge.payouts]) {
    const { id, hash, attempt: stored } = payout
    if (hash !== null) continue
    const earlier = stored ? undefined : await payoutSender.find(id)
    if (earlier !== undefined) {
      engine.submit({ kind: 'paid', id, hash: earlier })
      continue
    }
    const attempt = stored ?? (await signOnce(engine, payoutSender, payout))
    const isPaid = await payoutSender.confirm(attempt)
    if (isPaid) engine.submit({ kind: 'paid', id, hash: attempt.at(-1)?.hash ?? '' })
    else engine.submit({ kind: 'paying', id, attempt: null })
  }
}

export const openBridge = (engine: Engine, rpc: Rpc, payoutSender: PayoutSender, everyMs: number): Bridge => {
  let working: Promise<void> | undefined
  const round = async (): Promise<void> => {
    await scan(engine, rpc)
    await payOut(engine, payoutSender)
  }
  const runOnce = (): Promise<void> => {
    working ??= round().finally(() => {
      working = undefined
    })
    return working
  }
  // The next interval asks an unreachable node again and finds what this one missed.
  const timer = setInterval(() => runOnce().catch(() => {}), everyMs)
  return { runOnce, stop: () => clearInterval(timer) }
}
