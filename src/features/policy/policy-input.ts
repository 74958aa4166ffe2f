import { invalid } from '#kernel/contract/fault.ts'
import { toUnits, usdDecimals } from '#kernel/money/money.ts'
import { fieldNames, type PolicyInput } from './policy-view.ts'
import * as rules from './rules.ts'

/** Reads the limits that a caller asks for, and checks them against those of the platform. */

type ChainAddressView = { chain_id: string; address: string }

/** Returns the addresses of a list with their chains, without duplicates; refuses chains that are not served. */
function chainAddressesOf(field: string, list: readonly ChainAddressView[], served: readonly string[]) {
  const unservedIndex = list.findIndex(({ chain_id }) => !served.includes(chain_id))
  if (unservedIndex >= 0) {
    const sentence = `Input should be one of the chains that are served: ${served.join(', ')}`
    throw invalid(`${field}.${unservedIndex}.chain_id`, 'chain_not_served', sentence)
  }
  return [...new Set(list.map((each) => rules.chainAddressOf(each.chain_id, each.address)))]
}

export function wantedOf(input: PolicyInput, { chains: served }: rules.Limits): rules.Wanted {
  const { per_transaction_usd: perTransaction, per_day_usd: perDay, chains, tokens, recipients } = input
  const { approval_above_usd: approvalAbove, chat_per_day_usd: chatPerDay } = input
  return {
    ...(perTransaction !== undefined && { perTransactionMicros: toUnits(perTransaction, usdDecimals) }),
    ...(perDay !== undefined && { perDayMicros: toUnits(perDay, usdDecimals) }),
    ...(chatPerDay !== undefined && { chatPerDayMicros: toUnits(chatPerDay, usdDecimals) }),
    ...(chains && { chains: [...new Set(chains)] }),
    ...(tokens !== undefined && { tokens: tokens && chainAddressesOf('tokens', tokens, served) }),
    ...(recipients && { recipients: chainAddressesOf('recipients', recipients, served) }),
    ...(approvalAbove !== undefined && {
      approvalAboveMicros: approvalAbove === null ? null : toUnits(approvalAbove, usdDecimals),
    }),
  }
}

/** Refuses a raise above the platform's limits. */
export function assertWithinPlatform(platformLimits: rules.Limits, wanted: rules.Wanted): void {
  const [field] = rules.widenedFields(platformLimits, wanted)
  if (field === undefined) return
  const limit = platformLimits[field]
  const name = fieldNames[field]
  if (typeof limit === 'bigint')
    throw invalid(name, 'less_than_equal', `Input should be less than or equal to ${rules.usd(limit)}`, {
      le: rules.usd(limit),
    })
  throw invalid(
    name,
    'not_allowed',
    'Input should have only entries that the operator of this gateway allows',
  )
}
