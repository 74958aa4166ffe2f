import type { Chain, Token } from '#kernel/chains.ts'
import { sameAddress } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Price, Prices } from '#upstreams/prices/prices.ts'
import type { Solana } from '#upstreams/solana/solana.ts'
import type { ChainReadingView, HoldingView } from './contract.ts'
import { holdingsCache, type Known } from './holdings-cache.ts'
import { type EarnShare, type Held, type Reading, readEvm, readSolana } from './holdings-reading.ts'
import { holdingOf, priceKeyOf, totalUsd } from './holdings-value.ts'
import type { Wallet } from './store.ts'

/** Everything the wallets of a user hold. One silent chain never blanks the others. */

export type ChainReader = { family: 'evm'; chain: Evm } | { family: 'solana'; chain: Solana }

type Needs = {
  chains: readonly ChainReader[]
  prices: Prices
  share: EarnShare | null
  walletsOf: (userId: string) => Promise<Wallet[]>
  seenTokens: (userId: string) => Promise<Map<string, Token[]>>
  clock: Clock
  freshMs?: number
}
export type HoldingsAsk = { family?: Chain['family'] | undefined; force: boolean }
export type HoldingsAnswer = {
  holdings: HoldingView[]
  total_value_usd: string
  complete: boolean
  stale: boolean
  as_of: string
  chains: ChainReadingView[]
  errors: { chain_id: string | null; message: string }[]
}
export type Holdings = {
  of(userId: string, ask: HoldingsAsk): Promise<HoldingsAnswer>
  /** A receipt of ours moved something: the next reading asks the chain. */
  invalidate(userId: string, chainId: string): void
}

/** Below two seconds, so that a deposit shows within them on every instance. */
const freshMsDefault = 1_000
const entriesMost = 20_000

type Look = { row: Chain; known: Partial<Known> & { error: string | null } }

export function holdings({ chains, prices, share, walletsOf, seenTokens, clock, freshMs }: Needs): Holdings {
  const cache = holdingsCache({ freshMs: freshMs ?? freshMsDefault, entriesMost, now: () => clock.now() })
  const keyOf = (userId: string, chainId: string) => `${userId}:${chainId}`

  const read = async ({ family, chain }: ChainReader, address: string, seen: readonly Token[]) => {
    const { row } = chain
    const here = share?.chainId === row.id ? share : null
    const listed = [...row.tokens, ...(here ? [here.token] : [])]
    const unlisted = seen.filter(
      ({ address: at }) => !listed.some((token) => sameAddress(row, token.address, at)),
    )
    const ask = { address, seen: unlisted, share: here, signal: AbortSignal.timeout(row.readTimeoutMs) }
    const reading: Promise<Reading> = family === 'evm' ? readEvm(chain, ask) : readSolana(chain, ask)
    return inTime(reading, ask.signal, row)
  }

  return {
    invalidate: (userId, chainId) => cache.invalidate(keyOf(userId, chainId)),

    async of(userId, { family, force }) {
      const [wallets, seen] = await Promise.all([walletsOf(userId), seenTokens(userId)])
      const asked = chains.filter((each) => !family || each.family === family)
      const looks = await Promise.all(
        asked.flatMap((reader) => {
          const { row } = reader.chain
          const wallet = wallets.find(({ kind }) => kind === (reader.family === 'evm' ? 'evm' : 'svm'))
          if (!wallet) return []
          const ask = { force, read: () => read(reader, wallet.address, seen.get(row.id) ?? []) }
          return [cache.get(keyOf(userId, row.id), ask).then((known): Look => ({ row, known }))]
        }),
      )
      return answerOf(looks, await priced(prices, looks), clock.now())
    },
  }
}

/** An adapter may not heed the signal at once; the answer does not wait for it. */
function inTime<T>(reading: Promise<T>, signal: AbortSignal, row: Chain): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener(
      'abort',
      () => reject(new Fault('upstream_timeout', `${row.displayName} did not answer`)),
      {
        once: true,
      },
    )
  })
  return Promise.race([reading, late])
}

type Priced = { prices: ReadonlyMap<string, Price>; source: string; error: string | null }

async function priced(source: Prices, looks: readonly Look[]): Promise<Priced> {
  const keys = looks.flatMap(({ row, known }) =>
    (known.reading?.held ?? []).map((held) => priceKeyOf(row, held)),
  )
  try {
    return { prices: await source.of([...new Set(keys)]), source: source.source, error: null }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return { prices: new Map(), source: source.source, error: fault.message }
  }
}

function answerOf(looks: readonly Look[], { prices, source, error }: Priced, now: Date): HoldingsAnswer {
  const list = looks.flatMap(({ row, known }) =>
    (known.reading?.held ?? []).map((held: Held) =>
      holdingOf(held, {
        chain: row,
        block: known.reading?.block ?? 0n,
        source,
        price: prices.get(priceKeyOf(row, held)),
      }),
    ),
  )
  const chains = looks.map(readingView)
  const stale = chains.some(({ status }) => status !== 'ok')
  return {
    holdings: list,
    total_value_usd: totalUsd(list),
    complete: !stale && list.every(({ value_usd }) => value_usd !== null),
    stale,
    as_of: now.toISOString(),
    chains,
    errors: [
      ...chains.flatMap(({ chain_id, error: message }) => (message === null ? [] : [{ chain_id, message }])),
      ...(error === null ? [] : [{ chain_id: null, message: error }]),
    ],
  }
}

function readingView({ row, known }: Look): ChainReadingView {
  const { reading, at, error } = known
  return {
    chain_id: row.id,
    status: error === null ? 'ok' : reading ? 'stale' : 'failed',
    as_of_block: reading ? Number(reading.block) : null,
    as_of: at ? at.toISOString() : null,
    error,
  }
}
