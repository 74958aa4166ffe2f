import {
  type CheckedTpSl,
  checkTpSl,
  listedTpSl,
  singleTpSl,
  trailingTpSl,
} from '#engines/trigger-orders/tp-sl.ts'
import { invalid } from '#kernel/contract/fault.ts'
import type { HooksInput } from './contract.ts'

export function checkedTpSl(input: HooksInput): CheckedTpSl[] {
  const legs: CheckedTpSl[] = [
    ...listedTpSl(input.stop_losses, 'stop_losses', 'stop_loss'),
    ...listedTpSl(input.take_profits, 'take_profits', 'take_profit'),
    ...singleTpSl(input.stop_loss, 'stop_loss'),
    ...singleTpSl(input.take_profit, 'take_profit'),
  ].map(checkTpSl)
  const { trailing_percentage: trail } = input
  if (trail !== undefined) legs.push(trailingTpSl(trail, 'trailing_percentage'))
  if (legs.length > 0) return legs
  throw invalid(
    'stop_losses',
    'missing',
    'At least one of `stop_losses`, `take_profits` and `trailing_percentage` is required: add one of them',
    { fields: ['stop_losses', 'take_profits', 'trailing_percentage'] },
  )
}
