import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPublicClient, http } from 'viem'
import { polygon } from 'viem/chains'
import { approvalCalls } from '#world/polymarket/chain/calls.ts'
import { startWorld, type World, type WorldPart } from '#world/world.ts'
import { accountOf } from '../venue/venue.ts'
import { type Control, readJson, walletOf } from './prediction.ts'

type Leg = {
  orderId: string
  wallet: string
  outcome: 0 | 1
  side: 'BUY' | 'SELL'
  shares: string
  cash: string
  fee: string
}
export type Trade = {
  id: string
  key: string
  status: string
  hash: `0x${string}`
  attempts: number
  error: string | null
  matchMs: number
  legs: Leg[]
  conditionId: string
}
export type PlacedOrder = {
  id: string
  wallet: string
  side: 'BUY' | 'SELL'
  size: string
  matched: string
  status: string
  type: string
  trades: string[]
}
export type Effects = { openTrades: number; trades: Trade[]; orders: PlacedOrder[] }
export type Balances = { pusd: string; usdc: string; usdce: string; shares: Record<string, string> }

/** The prediction market with its Polygon node, and no more of the world than is asked for. */
export type PredictionWorld = {
  world: World
  control: Control
  effects: (wallet?: string) => Promise<Effects>
  balances: (wallet: string, tokens?: readonly string[]) => Promise<Balances>
  receipt: (hash: `0x${string}`) => Promise<{ status: 'success' | 'reverted' }>
  /** An ordinary account with gas, dollars and all approvals. */
  account: (number: number, usd?: string) => Promise<`0x${string}`>
  stop: () => Promise<void>
}

export const startPredictionWorld = async (
  dataDir?: string,
  otherParts: readonly WorldPart[] = [],
): Promise<PredictionWorld> => {
  const folder = dataDir ?? (await mkdtemp(join(tmpdir(), 'prediction-')))
  const world = await startWorld({ dataDir: folder, port: 0, only: ['137', 'polymarket', ...otherParts] })
  const post = <T>(url: string, method: string, body?: unknown): Promise<T> =>
    readJson<T>(url, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  const control: Control = async (method, path, body) => {
    const reply = await post<Record<string, unknown>>(
      `${world.urls.control}/venues/polymarket${path}`,
      method,
      body,
    )
    // The market has errors, the control port in front of it details.
    assert.equal(reply.error ?? reply.detail, undefined, `${method} ${path}`)
    return reply as never
  }
  const rpcUrl = world.urls.evm['137']
  const chain = createPublicClient({ chain: polygon, transport: http(rpcUrl) })
  return {
    world,
    control,
    effects: (wallet) => control('GET', `/effects${wallet ? `?wallet=${wallet}` : ''}`),
    balances: (wallet, tokens = []) => control('GET', `/balances?wallet=${wallet}&tokens=${tokens.join()}`),
    receipt: (hash) => chain.getTransactionReceipt({ hash }),
    account: async (number, usd = '1000') => {
      const { address } = accountOf(number)
      const grant = { chain_id: '137', address, token: 'native', amount: '100' }
      await post(`${world.urls.control}/faucet/fund`, 'POST', grant)
      await control('POST', '/credit', { wallet: address, amount: usd })
      const wallet = walletOf(number, rpcUrl)
      for (const { to, data } of approvalCalls()) {
        const hash = await wallet.sendTransaction({ account: accountOf(number), chain: polygon, to, data })
        assert.equal((await chain.waitForTransactionReceipt({ hash, pollingInterval: 50 })).status, 'success')
      }
      return address
    },
    stop: async () => {
      await world[Symbol.asyncDispose]()
      if (dataDir === undefined) await rm(folder, { recursive: true, force: true })
    },
  }
}
