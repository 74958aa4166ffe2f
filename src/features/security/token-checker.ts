import { createFairQueue } from '#kernel/async/fair-queue.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { findChain } from '#kernel/contract/token-ref.ts'
import type { Chain } from '#kernel/money/chains.ts'
import {
  type Assessment,
  assessmentOf,
  noTaxes,
  type SecurityStatus,
  type TokenRef,
  type TokenVerdict,
  worstOf,
} from '#kernel/money/token-security.ts'
import { isShareUsedUp, type ReportTurn, type TokenReports } from '#kernel/money/token-security-reports.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Solana } from '#upstreams/solana/solana.ts'
import { assessMint } from './assess-mint.ts'
import { assessTrade, ownSource } from './assess-trade.ts'
import { isListed, keyOf } from './token-address.ts'

type Reader = { family: 'evm'; chain: Pick<Evm, 'row' | 'probe'> } | { family: 'solana'; chain: Solana }
export type CheckerDeps = {
  readers: readonly Reader[]
  reports: readonly TokenReports[]
  clock: Clock
}
type CheckOptions = {
  /** The key under which the check waits in the fair queue. */
  owner: string
  /** A verdict older than this is not used. */
  maxAgeMs: number
  /** Whether a trade follows the check at once. */
  isTrade?: boolean
}
export type Checker = {
  check(tokens: readonly TokenRef[], options: CheckOptions): Promise<TokenVerdict[]>
}

/** A verdict is fresh for a short time, because a token can change with each block. */
const freshMs = 10_000
const entriesMax = 20_000
const checksMax = 16
const waitingMax = 2_000
/** At most this many checks of one user wait: a few requests with as many tokens as a request may name. */
const waitingOfUserMax = 200
/** How long the check of one token may take, including its wait in the queue. */
const checkMsMax = 10_000

type Check = { token: TokenRef; chain: Chain; turn: ReportTurn }
type OwnCheck = Assessment & Pick<TokenVerdict, 'poolMicros'> & { block: bigint | null }

/** The gateway's simulation and the services that cover the chain check each token, and the worst result counts. */
export function createChecker({ readers, reports, clock }: CheckerDeps): Checker {
  const chains = readers.map(({ chain }) => chain.row)
  const cache = createTtlCache<TokenVerdict>({ ttlMs: freshMs, entriesMax, nowMs: monotonicMs })
  const queue = createFairQueue({ runsMax: checksMax, waitingMax, waitingOfKeyMax: waitingOfUserMax })

  const withoutCheck = (token: TokenRef, status: SecurityStatus, reason: Reason): TokenVerdict => {
    const isPassed = status === 'passed'
    const level = isPassed ? 'very_low' : 'unknown'
    return {
      ...token,
      ...noTaxes,
      status,
      verdict: isPassed ? 'safe' : 'unknown',
      allowed: isPassed,
      riskLevel: level,
      reasons: [{ ...reason, level, source: 'gateway' }],
      sources: [],
      isHoneypot: null,
      score: null,
      simulatedAtBlock: null,
      poolMicros: null,
      checkedAt: clock.now(),
    }
  }

  const runCheck = async (token: TokenRef, chain: Chain, turn: ReportTurn): Promise<TokenVerdict> => {
    const asked = reports.filter((each) => each.covers(chain))
    const [own, ...others] = await Promise.all([
      ownCheck(readers, chain, token.address),
      ...asked.map((each) => reportOf(each, { chain, address: token.address, turn })),
    ])
    return worstOf(token, { own, others, checkedAt: clock.now() })
  }

  const runOnce = async (key: string, { token, chain, turn }: Check): Promise<TokenVerdict> => {
    const verdict = await runCheck(token, chain, turn)
    // A check that did not get all facts is repeated for the next caller.
    if (verdict.verdict === 'unknown' || isShort(verdict)) cache.invalidate(key)
    return verdict
  }

  /**
   * Callers share a check that is running, but none that still waits in the queue of another caller. A trade shares
   * only checks of trades. No check is shared that lacks a report because its user's quota at a service was used up.
   */
  const loadVerdict = async (
    tokenKey: string,
    token: TokenRef,
    chain: Chain,
    { owner, maxAgeMs, isTrade = false, signal }: CheckOptions & { signal: AbortSignal },
  ): Promise<TokenVerdict> => {
    const ofTrades = `trade ${tokenKey}`
    const key = isTrade ? ofTrades : tokenKey
    const shared = cache.peek(ofTrades, maxAgeMs) ?? cache.peek(key, maxAgeMs) ?? cache.loading(key)
    const found = shared && (await shared)
    if (found && !isShort(found)) return found
    let isOwn = false
    const load = () => {
      isOwn = true
      return runOnce(key, { token, chain, turn: { user: owner, isTrade } })
    }
    const loadOrShare = async () => {
      const loaded = await cache.get(key, load, { maxAgeMs })
      return isOwn || !isShort(loaded) ? loaded : cache.get(key, load, { force: true })
    }
    return queue.run(owner, loadOrShare, signal)
  }

  const verdictOf = async (token: TokenRef, options: CheckOptions): Promise<TokenVerdict> => {
    const chain = findChain(chains, token.chainId)
    if (!chain || (chain.family === 'evm' && !chain.swaps))
      return withoutCheck(token, 'unsupported_chain', unsupportedChain)
    if (isListed(chain, token.address)) return withoutCheck(token, 'passed', listed)
    const key = keyOf(chain, token.address)
    const answered = new AbortController()
    try {
      const loaded = loadVerdict(key, token, chain, { ...options, signal: answered.signal })
      const found = await withTimeLimit(loaded, checkMsMax)
      return found ? { ...found, ...token } : withoutCheck(token, 'skipped', outOfTime)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return withoutCheck(token, 'api_unavailable', { code: 'not_checked', message: error.message })
    } finally {
      answered.abort()
    }
  }

  return {
    check: (tokens, options) => Promise.all(tokens.map((token) => verdictOf(token, options))),
  }
}

type Reason = { code: string; message: string }
const unsupportedChain = { code: 'unsupported_chain', message: 'Tokens of this chain are not checked' }
const listed = { code: 'listed', message: 'It is one of the tokens that this gateway has reviewed' }
const outOfTime = { code: 'out_of_time', message: 'The check took too long; ask again for this token' }

async function ownCheck(readers: readonly Reader[], { id }: Chain, address: string): Promise<OwnCheck> {
  const reader = readers.find(({ chain }) => chain.row.id === id)!
  try {
    if (reader.family === 'evm') {
      const probe = await reader.chain.probe(address)
      const { trade } = probe
      // USDC has six decimals, so its units are micro-dollars.
      const poolMicros = trade.type === 'traded' ? trade.trade.liquidityUnits : null
      return { ...assessTrade(probe), poolMicros, block: probe.block }
    }
    const inspected = await reader.chain.inspectMint(address)
    const block = inspected.type === 'mint' ? inspected.facts.slot : inspected.slot
    return { ...assessMint(inspected), poolMicros: null, block }
  } catch (error) {
    return { ...unavailable(ownSource, error, 'not_simulated'), poolMicros: null, block: null }
  }
}

async function reportOf(
  reports: TokenReports,
  { chain, address, turn }: { chain: Chain; address: string; turn: ReportTurn },
): Promise<Assessment> {
  try {
    return await reports.report(chain, address, turn)
  } catch (error) {
    return unavailable(reports.source, error, isShareUsedUp(error) ? shareUsedUp : 'provider_unavailable')
  }
}

const shareUsedUp = 'share_used_up'
/**
 * Whether the verdict lacks the report of a service because the user who requested it had used up a quota of that
 * service.
 */
const isShort = ({ reasons }: TokenVerdict): boolean => reasons.some(({ code }) => code === shareUsedUp)

function unavailable(source: string, error: unknown, code: string): Assessment {
  if (!(error instanceof Fault)) throw error
  return assessmentOf(source, [{ code, level: 'unknown', message: error.message }])
}
