import type { Moved } from '#features/portfolio/in-flight.ts'
import { createPortfolio, type PortfolioReads } from '#features/portfolio/portfolio.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import type { Section } from './section.ts'
import type { SharedParts } from './section-parts.ts'
import { perpLimitsOf, venueChainId } from './settings.ts'

type PortfolioParts = Pick<SharedParts, 'core' | 'chains' | 'prices' | 'holdings' | 'innerCalls'> & {
  /** The parts of the holdings that are served beside the wallets. */
  hasVault: boolean
  hasPredictions: boolean
  operations: () => readonly Operation[]
}

const readMs = 10_000
const money = ['trade', 'earn', 'withdraw']

/** Opens the sum of what a user has; it calls the reads of other sections as the user would. */
export function openPortfolio({
  core,
  chains,
  prices,
  holdings,
  innerCalls,
  operations,
  hasVault,
  hasPredictions,
}: PortfolioParts): Section {
  const { config, clock, taskEngine } = core
  const named = (name: string) => operations().find((operation) => operation.name === name)
  const readerOf =
    <Output>(operation: Operation) =>
    async (caller: Caller) =>
      (await innerCalls().call({
        operation,
        input: {},
        caller,
        signal: AbortSignal.timeout(readMs),
      })) as Output
  const venueReads = (): PortfolioReads['venue'] => {
    const [perp, setup, spot] = ['perp_orders', 'perp_setup_status', 'spot_venue_orders'].map(named)
    return (
      perp &&
      setup &&
      spot && {
        chainId: venueChainId,
        name: 'Hyperliquid',
        perp: readerOf(perp),
        setup: readerOf(setup),
        spot: readerOf(spot),
      }
    )
  }
  const priceOf = async ({ chainId, tokenAddress }: Moved) => {
    const chain = chains.table.find(({ id }) => id === chainId)
    if (!chain) return undefined
    const isNative = tokenAddress.toLowerCase() === chain.native.address.toLowerCase()
    const key = isNative ? chain.native.priceId : `${chain.llamaSlug}:${tokenAddress}`
    return (await prices.get([key])).get(key)?.price
  }
  const operationsOfPortfolio = createPortfolio({
    reads: () => ({
      holdings: ({ userId }) => holdings.forUser(userId, { force: false }),
      venue: venueReads(),
      held: [
        'wallets',
        ...(hasVault ? (['vault'] as const) : []),
        ...(hasPredictions ? (['predictions'] as const) : []),
      ],
    }),
    tasks: taskEngine.tasks,
    isMoneyKind: (kind) =>
      operations().some(
        ({ name, entry }) =>
          entry.kind === 'task' && (entry.taskKind ?? name) === kind && money.includes(entry.access),
      ),
    priceOf,
    fees: { venueWithdrawalUsd: perpLimitsOf(config).withdrawFeeUsd },
    clock,
  })
  return { part: 'wallets', operations: operationsOfPortfolio }
}
