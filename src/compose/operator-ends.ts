import type { Config } from '#config.ts'
import { createTaskAcceptance } from '#durable/accept-task.ts'
import type { TaskAcceptanceDeps } from '#durable/build-promise.ts'
import { endOrder } from '#engines/trigger-orders/order-end.ts'
import { chainIds, chainList } from '#features/chains/chain-list.ts'
import { hookRules } from '#features/hooks/hook-rules.ts'
import { swapHookWrites } from '#features/hooks/swap-hooks.ts'
import { limitOrderRules } from '#features/limit-orders/limit-order-rules.ts'
import { createLatePaymentWatch } from '#features/swap/late-payment.ts'
import { type OperatorEnd, operatorEndOfSwap } from '#features/swap/operator-end.ts'

type Deps = TaskAcceptanceDeps & { config: Config }

/**
 * How the kinds of tasks end whose own end does more than to report it, by the kind: orders and hooks, costs, later
 * payments. Without an upstream: the command of an operator runs beside the gateway.
 */
export function operatorEnds({ config, ...deps }: Deps): ReadonlyMap<string, OperatorEnd> {
  // Their nodes are not asked.
  const urls = Object.fromEntries(chainIds.map((id) => [id, 'unused']))
  const ofSwap = operatorEndOfSwap({
    chains: chainList({ urls, finality: config.FINALITY }),
    hooks: swapHookWrites,
    watchLatePayment: createLatePaymentWatch(createTaskAcceptance(deps)),
  })
  const ofOrder =
    (rules: typeof hookRules | typeof limitOrderRules): OperatorEnd =>
    (task, ending, finding) => {
      const ended = ofSwap(task, ending, finding)
      if ('refusal' in ended) return ended
      return endOrder(rules as typeof hookRules, { task: task as never, now: finding.at }, ended as never)
    }
  return new Map([
    ['swap', ofSwap],
    [hookRules.kind, ofOrder(hookRules)],
    [limitOrderRules.kind, ofOrder(limitOrderRules)],
  ])
}
