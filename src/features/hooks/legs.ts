import {
  type CheckedLeg,
  checkLeg,
  listedLegs,
  singleLeg,
  trailingLeg,
} from '#engines/trigger-orders/stop-and-profit-legs.ts'
import { invalid } from '#kernel/contract/fault.ts'
import type { HooksInput } from './contract.ts'

export function checkedLegs(input: HooksInput): CheckedLeg[] {
  const legs: CheckedLeg[] = [
    ...listedLegs(input.stop_losses, 'stop_losses', 'stop_loss'),
    ...listedLegs(input.take_profits, 'take_profits', 'take_profit'),
    ...singleLeg(input.stop_loss, 'stop_loss'),
    ...singleLeg(input.take_profit, 'take_profit'),
  ].map(checkLeg)
  const { trailing_percentage: trail } = input
  if (trail !== undefined) legs.push(trailingLeg(trail, 'trailing_percentage'))
  if (legs.length > 0) return legs
  throw invalid(
    'stop_losses',
    'missing',
    'At least one of `stop_losses`, `take_profits` and `trailing_percentage` is required: add one of them',
    { fields: ['stop_losses', 'take_profits', 'trailing_percentage'] },
  )
}
