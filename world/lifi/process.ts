import { mkdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { useCompileCache } from '#world/compile-cache.ts'
import type { ChainAccount } from '#world/solver/chain-account.ts'
import type { Endpoints } from '#world/solver/connections.ts'

/** The second provider of routes: what is bridged through LI.FI's contract is filled by the parts of the solver. */

useCompileCache()
const { listen } = await import('#world/listen.ts')
const { createRouter, HttpError, numberField, rejectUnknownFields } = await import('#world/router.ts')
const { requireChain } = await import('#world/solver/chains.ts')
const { openConnections } = await import('#world/solver/connections.ts')
const { controlRoutes, createRules } = await import('#world/solver/control.ts')
const { createEvmAccount } = await import('#world/solver/evm-account.ts')
const { createInventory } = await import('#world/solver/inventory.ts')
const { createKillSwitch } = await import('#world/solver/kill-points.ts')
const { createPrices } = await import('#world/solver/prices.ts')
const { createPayments } = await import('#world/solver/payments.ts')
const { createRealismControl } = await import('#world/solver/realism.ts')
const { createRefunds } = await import('#world/solver/refunds.ts')
const { createSettlement } = await import('#world/solver/settlement.ts')
const { startSolver } = await import('#world/solver/solver.ts')
const { openStore } = await import('#world/solver/store.ts')
const { lifiDesk } = await import('./desk.ts')
const { createLifiQuotes } = await import('./quote.ts')
const { serveLifi } = await import('./server.ts')
const { createStatus } = await import('./status.ts')
const { chainNamed, chainViews, lifiChains, tokenViews, toolViews } = await import('./views.ts')

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

/** Hundredths of a percent that the relayer of a bridge takes, and those that LI.FI adds. */
let serviceBps = 25n
const quoteLimit = { perWindow: values.realism === 'realistic' ? 75 : 0 }
let offsetMs = Number(values['clock-offset-seconds']) * 1000
const nowMs = () => Date.now() + offsetMs

const store = openStore(dataDir)
const { controlUrl, ...rest } = JSON.parse(endpoints) as Endpoints
const connections = openConnections({ controlUrl, ...rest })
const prices = createPrices(controlUrl)
const realism = createRealismControl(values.realism)
const killSwitch = createKillSwitch()
const heads = new Map<number, number>()

const openAccount = (chainId: number): ChainAccount => {
  const chain = requireChain(chainId)
  const { evm } = chain
  if (!evm) throw new HttpError(400, 'Only EVM chains are served.')
  const rpc = connections.rpc(chainId)
  const account = createEvmAccount({ rpc, store, prices, nowMs, desk: lifiDesk, chain: { ...chain, evm } })
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
  serviceBps: () => serviceBps,
  nowMs,
})
// Swaps are known by their receipts: nothing is followed between.
const swaps = { follow: async () => {}, notify: () => {} }
const onError = (error: Error): void => {
  process.stderr.write(`${error.stack}\n`)
}
const solver = startSolver({ store, accountOf, settlement, swaps, killSwitch, heads, nowMs, onError })
const quote = createLifiQuotes({
  store,
  accountOf,
  connections,
  inventory,
  prices,
  realism,
  serviceBps: () => serviceBps,
  nowMs,
})
const chainsOf = (query: URLSearchParams) => {
  const names = query.get('chains')?.split(',')
  return names ? names.flatMap((name) => chainNamed(name) ?? []) : lifiChains
}
const server = await serveLifi({
  realism,
  quoteLimit,
  routes: {
    '/v1/quote': quote,
    '/v1/status': createStatus({ store, connections, prices, realism, nowMs }),
    '/v1/chains': async () => ({ chains: await chainViews(prices, connections) }),
    '/v1/tokens': async (query) => ({ tokens: await tokenViews(prices, chainsOf(query)) }),
    '/v1/tools': async () => toolViews(),
  },
})
const setClockOffset = (seconds: number): void => {
  offsetMs = seconds * 1000
}
const pricing = () => ({ serviceBps: Number(serviceBps), quotesPerTwoHours: quoteLimit.perWindow })
const control = await listen(
  createRouter([
    ...controlRoutes({
      realism,
      rules: createRules(),
      settlement,
      inventory,
      killSwitch,
      store,
      setClockOffset,
    }),
    { method: 'GET', path: /^\/pricing$/, run: pricing },
    {
      method: 'POST',
      path: /^\/pricing$/,
      run: ({ fields }) => {
        rejectUnknownFields(fields, ['serviceBps', 'quotesPerTwoHours'])
        if (fields.serviceBps !== undefined)
          serviceBps = BigInt(Math.trunc(numberField(fields, 'serviceBps', -10_000, 1_000)))
        if (fields.quotesPerTwoHours !== undefined)
          quoteLimit.perWindow = Math.trunc(numberField(fields, 'quotesPerTwoHours', 0, 1_000_000))
        return pricing()
      },
    },
  ]),
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
