import { randomBytes } from 'node:crypto'
import type { ChainAccount } from './chain-account.ts'
import { QuoteError, rejectQuote } from './errors.ts'
import { type QuoteInput, readQuoteInput } from './quote-input.ts'
import type { QuoteTerms } from './quote-terms.ts'
import { protocolView, quoteView } from './quote-view.ts'
import type { Hex, SolverRequest } from './request.ts'
import type { Store } from './store.ts'

/** Chains and addresses that the solver does not serve, and errors that it answers the next quotes with. */
export type QuoteRules = {
  disabledChains: ReadonlySet<number>
  sanctioned: ReadonlySet<string>
  takeForcedError: () => QuoteError | undefined
}

export type QuoteDeps = {
  store: Store
  accountOf: (chainId: number) => ChainAccount
  terms: QuoteTerms
  rules: QuoteRules
  nowMs: () => number
}

const newId = (): Hex => `0x${randomBytes(32).toString('hex')}`

export const createQuotes = ({ store, accountOf, terms, rules, nowMs }: QuoteDeps) => {
  const assertServed = ({ origin, destination, user, recipient }: QuoteInput): void => {
    const forced = rules.takeForcedError()
    if (forced) throw forced
    for (const chain of [origin, destination])
      if (rules.disabledChains.has(chain.id))
        rejectQuote('CHAIN_DISABLED', `Chain ${chain.displayName} is disabled`)
    if ([user, recipient].some((each) => rules.sanctioned.has(each)))
      throw new QuoteError(400, 'SANCTIONED_WALLET_ADDRESS', 'The wallet address is sanctioned')
  }

  return async (fields: Record<string, unknown>) => {
    const input = readQuoteInput(fields)
    assertServed(input)
    const ready = [...new Set([input.origin, input.destination])].map(({ id }) => accountOf(id).prepare())
    await Promise.all(ready).catch((cause: Error) => {
      if (cause instanceof QuoteError) throw cause
      throw Object.assign(new QuoteError(503, 'SERVICE_UNAVAILABLE', 'The chain does not answer'), { cause })
    })
    const id = newId()
    const createdMs = nowMs()
    const expiresMs = createdMs + input.ttlSeconds * 1000
    // The user's own swap needs a pool; Solana has none here, so the solver fills it from its inventory.
    const isSwap = input.origin === input.destination && input.origin.vm === 'evm'
    const orderId = !isSwap && terms.hasOrder(input) ? newId() : undefined
    const found = isSwap
      ? await terms.swap(input, id, expiresMs)
      : await terms.deposit(input, { id, orderId: orderId ?? id })
    const { quoted, steps } = found
    const request: SolverRequest = {
      id,
      ...(orderId !== undefined && { orderId }),
      route: isSwap ? 'swap' : 'deposit',
      user: input.user,
      recipient: input.recipient,
      ...(input.refundTo !== undefined && { refundTo: input.refundTo }),
      ...(input.referrer !== undefined && { referrer: input.referrer }),
      originChainId: input.origin.id,
      originCurrency: input.input.address,
      destinationChainId: input.destination.id,
      destinationCurrency: input.output.address,
      quotedIn: String(quoted.inUnits),
      quotedOut: String(quoted.outUnits),
      minimumOut: String(quoted.minimumOut),
      slippageBps: input.slippageBps,
      createdMs,
      expiresMs,
      status: 'waiting',
      history: [{ status: 'waiting', atMs: createdMs, inTxHashes: [], txHashes: [] }],
      inTxs: [],
      outTxs: [],
    }
    store.save(request)
    return {
      ...quoteView(input, quoted, steps),
      ...(orderId !== undefined && protocolView(input, quoted, orderId)),
    }
  }
}
