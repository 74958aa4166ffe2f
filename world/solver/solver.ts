import type { ChainAccount } from './chain-account.ts'
import { solverChains } from './chains.ts'
import { markVanished, storeDeposit } from './deposits.ts'
import type { KillSwitch } from './kill-points.ts'
import type { Settlement } from './settlement.ts'
import type { Store } from './store.ts'
import type { Swaps } from './swaps.ts'

/** Pauses between two looks at the chains: while money is on its way, after a quote, and otherwise. */
const activePauseMs = 40
const waitingPauseMs = 120
const idlePauseMs = 1_000
/** Most quotes are used soon or never. */
const freshQuoteMs = 30_000
const pruneMs = 60_000

type SolverDeps = {
  store: Store
  accountOf: (chainId: number) => ChainAccount
  settlement: Settlement
  swaps: Swaps
  killSwitch: KillSwitch
  heads: Map<number, number>
  nowMs: () => number
  /** A chain that does not answer is asked again. */
  onError: (error: Error) => void
}

export type Solver = { wake: () => void; stop: () => void }

/** Reads the chains, and takes every open request one step further, one request at a time. */
export const startSolver = (deps: SolverDeps): Solver => {
  const { store, accountOf, settlement, swaps, killSwitch, heads, nowMs, onError } = deps
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let isAwake = false
  let isRunning = false
  let prunedMs = 0

  const readChain = async (chainId: number): Promise<void> => {
    const account = accountOf(chainId)
    const scan = await account.scan()
    if (scan.deposits.length > 0) killSwitch.reach('deposit-seen')
    for (const deposit of scan.deposits) storeDeposit(store, deposit)
    markVanished(store, chainId, scan, nowMs())
    heads.set(chainId, scan.head)
    account.confirmScan(scan)
    if (scan.deposits.length > 0) killSwitch.reach('deposit-stored')
  }

  const attempt = (work: Promise<void>): Promise<void> => work.catch(onError)

  const round = async (): Promise<void> => {
    const now = nowMs()
    const used = solverChains.filter(({ id }) => store.setting(`used:${id}`) !== undefined)
    await Promise.all([...used.map(({ id }) => attempt(readChain(id))), attempt(swaps.follow())])
    for (const request of store.active()) await attempt(settlement.advance(request))
    if (now - prunedMs > pruneMs) {
      store.prune(now)
      prunedMs = now
    }
  }

  const pauseMs = (): number => {
    if (store.active().length > 0) return activePauseMs
    return nowMs() - store.newestQuoteMs() < freshQuoteMs ? waitingPauseMs : idlePauseMs
  }

  const run = async (): Promise<void> => {
    isRunning = true
    isAwake = false
    await attempt(round())
    isRunning = false
    if (!stopped) timer = setTimeout(run, isAwake ? 0 : pauseMs())
  }
  void run()

  return {
    wake: () => {
      isAwake = true
      if (isRunning || stopped) return
      clearTimeout(timer)
      void run()
    },
    stop: () => {
      stopped = true
      clearTimeout(timer)
    },
  }
}
