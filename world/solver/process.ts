import { mkdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { useCompileCache } from '#world/compile-cache.ts'
import type { ChainAccount } from './chain-account.ts'
import type { Endpoints } from './connections.ts'

useCompileCache()
const { listen } = await import('#world/listen.ts')
const { createRouter } = await import('#world/router.ts')
const { createApi } = await import('./api.ts')
const { requireChain } = await import('./chains.ts')
const { openConnections } = await import('./connections.ts')
const { controlRoutes, createRules } = await import('./control.ts')
const { createEvmAccount, relayDesk } = await import('./evm-account.ts')
const { createInventory } = await import('./inventory.ts')
const { createKillSwitch } = await import('./kill-points.ts')
const { createPrices } = await import('./prices.ts')
const { createPayments } = await import('./payments.ts')
const { createQuotes } = await import('./quote.ts')
const { createQuoteTerms } = await import('./quote-terms.ts')
const { createRealismControl } = await import('./realism.ts')
const { createRefunds } = await import('./refunds.ts')
const { serve } = await import('./server.ts')
const { createSettlement } = await import('./settlement.ts')
const { createSolanaAccount } = await import('./solana-account.ts')
const { startSolver } = await import('./solver.ts')
const { openStore } = await import('./store.ts')
const { createSwaps } = await import('./swaps.ts')

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string' },
    'compile-cache': { type: 'string' },
    endpoints: { type: 'string' },
    'clock-offset-seconds': { type: 'string', default: '0' },
    realism: { type: 'string', default: 'quiet' },
    'watch-stdin': { type: 'boolean', default: false },
  },
})
const { 'data-dir': dataDir, endpoints } = values
if (dataDir === undefined || endpoints === undefined)
  throw new Error('--data-dir and --endpoints are required')
mkdirSync(dataDir, { recursive: true })

let offsetMs = Number(values['clock-offset-seconds']) * 1000
const nowMs = () => Date.now() + offsetMs

const store = openStore(dataDir)
const { controlUrl, ...rest } = JSON.parse(endpoints) as Endpoints
const connections = openConnections({ controlUrl, ...rest })
const prices = createPrices(controlUrl)
const realism = createRealismControl(values.realism)
const killSwitch = createKillSwitch()
const rules = createRules()
const heads = new Map<number, number>()

const openAccount = (chainId: number): ChainAccount => {
  const chain = requireChain(chainId)
  const deps = { rpc: connections.rpc(chainId), store, prices, nowMs }
  const account = chain.evm
    ? createEvmAccount({ ...deps, desk: relayDesk, chain: { ...chain, evm: chain.evm } })
    : createSolanaAccount({ ...deps, chain, port: connections.solanaPort })
  return {
    ...account,
    prepare: async () => {
      await account.prepare()
      // From now on deposits are searched on this chain.
      if (store.setting(`used:${chainId}`) === undefined) store.saveSetting(`used:${chainId}`, '1')
    },
  }
}
const accounts = new Map<number, ChainAccount>()
const accountOf = (chainId: number): ChainAccount => {
  const account = accounts.get(chainId) ?? openAccount(chainId)
  accounts.set(chainId, account)
  return account
}

const inventory = createInventory({ store, accountOf })
const payments = createPayments({ store, accountOf, killSwitch, nowMs })
const refunds = createRefunds({ store, accountOf, inventory, payments, prices, realism, nowMs })
const settlement = createSettlement({
  store,
  accountOf,
  inventory,
  payments,
  refunds,
  prices,
  realism,
  heads,
  nowMs,
})
const swaps = createSwaps({ store, rpcOf: connections.rpc, nowMs })
const onError = (error: Error): void => {
  process.stderr.write(`${error.stack}\n`)
}
const solver = startSolver({ store, accountOf, settlement, swaps, killSwitch, heads, nowMs, onError })
const terms = createQuoteTerms({ accountOf, connections, inventory, prices, realism })
const quote = createQuotes({ store, accountOf, terms, rules, nowMs })
const api = createApi({
  store,
  connections,
  prices,
  realism,
  rules,
  quote,
  wake: solver.wake,
  notifySwap: swaps.notify,
  nowMs,
})
const server = await serve({ api, realism, port: 0 })
const setClockOffset = (seconds: number): void => {
  offsetMs = seconds * 1000
}
const control = await listen(
  createRouter(controlRoutes({ realism, rules, settlement, inventory, killSwitch, store, setClockOffset })),
  { preferredPort: 0 },
)

let stopping = false
const stop = async (): Promise<void> => {
  if (stopping) return
  stopping = true
  solver.stop()
  await Promise.all([server.close(), control.close()])
  connections.close()
  store.close()
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
if (values['watch-stdin']) process.stdin.once('end', stop).once('close', stop).resume()

process.stdout.write(`${JSON.stringify({ ready: true, port: server.port, controlPort: control.port })}\n`)
