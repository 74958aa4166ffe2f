import type { Config } from '#config.ts'
import { contracts } from '#contracts.ts'
import type { IntakeDeps } from '#durable/accept/build-acceptance.ts'
import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { approveAgent } from '#engines/custody/agent-key-store.ts'
import { createGasBudget } from '#engines/evm-batch/user-gas-budget.ts'
import { endOrder } from '#engines/trigger-orders/after-task-end.ts'
import { unquotedEnd } from '#engines/trigger-orders/operator-end-of-found-sale.ts'
import { venueName } from '#engines/venue/records/order-store.ts'
import { chainIds, chainList } from '#features/chains/chain-list.ts'
import { operatorEndOfRecharge } from '#features/credits/operator-end.ts'
import type { grantKind } from '#features/credits/operator-grant.ts'
import { operatorEndOfDeposit, operatorEndOfWithdrawal } from '#features/earn/operator-end.ts'
import { hookRules } from '#features/hooks/hook-order-rules.ts'
import { swapHookWrites } from '#features/hooks/swap-hooks.ts'
import type { hookKind } from '#features/hooks/view.ts'
import type { contract as image } from '#features/image/contract.ts'
import { limitOrderRules } from '#features/limit-orders/limit-order-rules.ts'
import type { limitOrderKind } from '#features/limit-orders/view.ts'
import { operatorEndOfFund } from '#features/perp/fund-operator-end.ts'
import { type ApproveKey, operatorEndOfSetup } from '#features/perp/setup-operator-end.ts'
import { operatorEndOfWithdraw } from '#features/perp/withdraw-operator-end.ts'
import type { exitKind } from '#features/predmkt/exit-task.ts'
import type { runKindName } from '#features/schedules/run.ts'
import type { triggerKind } from '#features/spot-venue/trigger-store.ts'
import type { syncKind } from '#features/subscriptions/sync.ts'
import { createLatePaymentWatch } from '#features/swap/settle/late-payment.ts'
import { isWholeFill, operatorEndOfSwap } from '#features/swap/settle/operator-end.ts'
import type { faucetGrantKind } from '#features/wallets/faucet-grant.ts'
import { operatorEndOfTransfer } from '#features/wallets/transfer-operator-end.ts'
import { type Entry, operationName } from '#kernel/contract/operation.ts'
import { type OperatorEnd, reportedEnd } from '#kernel/task/operator-end.ts'
import type { Tx } from '#kernel/task/task.ts'
import { shareTokenAt } from './earn.ts'
import { bridgeOf, perpLimitsOf } from './settings.ts'
import { fundingRouteOn } from './venue-bridge.ts'

type Deps = IntakeDeps & { config: Config }

type SnakeCase<Text extends string> = Text extends `${infer Letter}${infer Rest}`
  ? `${Letter extends Lowercase<Letter> ? Letter : `_${Lowercase<Letter>}`}${SnakeCase<Rest>}`
  : ''
type KindsOf<Section> = Section extends { group: infer Group extends string; entries: infer Entries }
  ? {
      [Key in keyof Entries & string]: Entries[Key] extends { isEndReported: true }
        ? never
        : Entries[Key] extends { taskKind: infer Kind extends string }
          ? Kind
          : Entries[Key] extends { kind: 'task' }
            ? `${Group}_${SnakeCase<Key>}`
            : never
    }[keyof Entries & string]
  : never
/** Every task kind except those of operations with `isEndReported`, whose end other records show. */
type TaskKindName =
  | KindsOf<(typeof contracts)[number] | typeof image>
  | typeof hookKind
  | typeof limitOrderKind
  | typeof triggerKind
  | 'venue_key_renewal'
  | typeof exitKind
  | typeof faucetGrantKind
  | typeof grantKind
  | typeof syncKind
  | 'swap_late_payment'
  | typeof runKindName
  | 'credits_payment_search'
  | 'earn_audit'
  | 'earn_snapshot'
  | 'venue_key_renewals'

const approveKey: ApproveKey = (tx, userId, fact) => approveAgent(tx, { userId, venue: venueName }, fact)

/** A kind without an effect outside of the database has an outcome that is always known. */
const hasNoEffect = undefined

/** The kinds whose records elsewhere show what a task did, such as those of the venue. */
const reportedEnds = contracts.flatMap(({ group, entries }) =>
  Object.entries<Entry>(entries).flatMap(([key, entry]) =>
    'isEndReported' in entry ? [[entry.taskKind ?? operationName(group, key), reportedEnd] as const] : [],
  ),
)

/** Returns the chains as data alone. Their URLs are placeholders, so no node can be called. */
export const namedChains = ({ FINALITY: finality }: Pick<Config, 'FINALITY'>) =>
  chainList({ urls: Object.fromEntries(chainIds.map((id) => [id, 'unused'])), finality })

/**
 * Returns, by kind of task, the function by which an operator ends a task. It books what the last step of the kind
 * itself would have booked; it is undefined for a kind that no operator ends. No upstream is called, because the
 * operator's command runs in a process beside the gateway.
 */
export function createOperatorEnds({ config, ...deps }: Deps): ReadonlyMap<string, OperatorEnd | undefined> {
  const chains = namedChains(config)
  const chainOf = (chainId: string) => {
    const chain = chains.find(({ id }) => id === chainId)
    if (!chain) throw new Error(`chain ${chainId} is not configured`)
    return chain
  }
  const swap = operatorEndOfSwap({
    chains,
    hooks: swapHookWrites,
    watchLatePayment: createLatePaymentWatch(createTaskIntake(deps)),
  })
  const orderOf =
    (rules: typeof hookRules | typeof limitOrderRules): OperatorEnd =>
    (task, ending, finding) => {
      const ended = ('origin' in task.data ? swap : unquotedEnd)(task, ending, finding)
      if ('refusal' in ended) return ended
      return endOrder(rules as typeof hookRules, { task: task as never, now: finding.at }, ended as never)
    }
  const gas = createGasBudget({ db: deps.transactions.pool, budgetWeiOf: () => 0n, clock: deps.clock })
  const payoutChain = chainOf(bridgeOf(config).chainId)
  const perp = {
    route: fundingRouteOn(config, payoutChain),
    chain: { row: payoutChain },
    chains,
    payoutChain,
    limits: perpLimitsOf(config),
    batches: { releaseGas: (tx: Tx, id: string) => gas.settle(tx, id, 0n) },
    swapEnd: swap,
    approveKey,
  }
  const vaultChain = chainOf(config.EARN_CHAIN_ID)
  const earn = {
    vault: { chainId: vaultChain.id, address: config.EARN_VAULT_ADDRESS },
    usdc: vaultChain.usdc,
    shareToken: shareTokenAt(config.EARN_VAULT_ADDRESS),
    clock: deps.clock,
  }
  const ends: Record<TaskKindName, OperatorEnd | typeof hasNoEffect> = {
    swap,
    hook_execute: orderOf(hookRules),
    limit_order_execute: orderOf(limitOrderRules),
    wallets_transfer: operatorEndOfTransfer({ chains }),
    credits_recharge: operatorEndOfRecharge({ chains }),
    earn_deposit: operatorEndOfDeposit(earn),
    earn_withdraw: operatorEndOfWithdrawal(earn),
    perp_fund: operatorEndOfFund({ ...perp, isWholeFill }),
    perp_withdraw: operatorEndOfWithdraw(perp),
    perp_setup: operatorEndOfSetup(perp),
    venue_key_renewal: operatorEndOfSetup(perp),
    spot_trigger: reportedEnd,
    predmkt_exit: reportedEnd,
    predmkt_setup: reportedEnd,
    predmkt_setup_v2: reportedEnd,
    predmkt_order: reportedEnd,
    predmkt_fund: reportedEnd,
    predmkt_withdraw: reportedEnd,
    predmkt_redeem: reportedEnd,
    predmkt_cancel: hasNoEffect,
    chat: hasNoEffect,
    recommendations_refresh: hasNoEffect,
    image_create: hasNoEffect,
    strategy_backtest: hasNoEffect,
    limit_order_create: hasNoEffect,
    earn_sync: hasNoEffect,
    faucet_grant: hasNoEffect,
    credits_grant: hasNoEffect,
    // Each asks the provider for a page, or for the same setting again; neither moves money of a user.
    subscriptions_checkout: hasNoEffect,
    subscriptions_cancel: hasNoEffect,
    subscriptions_sync: hasNoEffect,
    swap_late_payment: hasNoEffect,
    schedule_run: hasNoEffect,
    credits_payment_search: hasNoEffect,
    earn_audit: hasNoEffect,
    earn_snapshot: hasNoEffect,
    venue_key_renewals: hasNoEffect,
  }
  return new Map([...reportedEnds, ...Object.entries(ends)])
}
