import { type Assessment, assessmentOf, type SecurityReason } from '#kernel/money/token-security.ts'
import type { InspectedMint, MintExtensions, MintFacts } from '#upstreams/solana/solana.ts'
import { ownSource, taxReason } from './assess-trade.ts'

/** This module assesses a token of Solana by the powers that its mint gives to its authorities and largest holders. */

const oneHolderPercentMax = 50n
const tenHoldersPercentMax = 80n

const high = (code: string, message: string): SecurityReason => ({ code, level: 'high', message })

export function assessMint(inspected: InspectedMint): Assessment {
  if (inspected.type === 'absent')
    return assessmentOf(ownSource, [high('no_mint', 'There is no mint at this address')])
  const { facts } = inspected
  const { transferFee } = facts.extensions
  const feeBps = transferFee?.bps ?? 0
  const reasons = [
    ...authorityReasons(facts),
    ...extensionReasons(facts.extensions),
    ...taxReason('transfer', feeBps),
    ...holderReasons(facts),
  ]
  const taxes = { buyTaxBps: feeBps, sellTaxBps: feeBps, transferTaxBps: feeBps }
  const isTrap = facts.extensions.isNonTransferable
  // Nothing was sold in a simulation, so only a mint that cannot be transferred is certainly a trap.
  return assessmentOf(ownSource, reasons, { ...taxes, isHoneypot: isTrap ? true : null })
}

function authorityReasons({ mintAuthority, freezeAuthority }: MintFacts): SecurityReason[] {
  return [
    ...(mintAuthority === null
      ? []
      : [high('mint_authority', 'An authority can mint any number of further tokens')]),
    ...(freezeAuthority === null
      ? []
      : [high('freeze_authority', 'An authority can freeze the tokens of any holder')]),
  ]
}

function extensionReasons(extensions: MintExtensions): SecurityReason[] {
  const { permanentDelegate, transferHook, pausable, transferFee, unknown } = extensions
  const reasons: SecurityReason[] = []
  if (permanentDelegate !== null)
    reasons.push(high('permanent_delegate', 'A delegate can take the tokens of any holder'))
  if (transferHook !== null)
    reasons.push(high('transfer_hook', 'A program decides about each transfer, and can refuse it'))
  if (extensions.isNonTransferable)
    reasons.push({ code: 'non_transferable', level: 'honeypot', message: 'It cannot be transferred' })
  if (extensions.isFrozenByDefault)
    reasons.push(high('frozen_by_default', 'The account of a new holder is frozen'))
  if (pausable !== null) reasons.push(high('pausable', 'An authority can stop all transfers'))
  if (transferFee && transferFee.authority !== null)
    reasons.push(
      transferFee.bps > 0
        ? high('transfer_fee_authority', 'Transfers cost a fee, which an authority can raise to everything')
        : {
            code: 'transfer_fee_authority',
            level: 'medium',
            message: 'An authority can introduce a fee for transfers',
          },
    )
  if (unknown.length > 0)
    reasons.push({
      code: 'unknown_extension',
      level: 'unknown',
      message: 'The mint has an extension whose effect is not known here',
    })
  return reasons
}

function holderReasons({ largestUnits, supplyUnits }: MintFacts): SecurityReason[] {
  if (largestUnits === null)
    return [{ code: 'holders_unknown', level: 'unknown', message: 'The largest holders are not known' }]
  const percentOf = (count: number): bigint =>
    supplyUnits === 0n
      ? 0n
      : (largestUnits.slice(0, count).reduce((sum, units) => sum + units, 0n) * 100n) / supplyUnits
  if (percentOf(1) >= oneHolderPercentMax)
    return [high('holders_concentrated', `One holder has ${percentOf(1)} % of the supply`)]
  if (percentOf(10) >= tenHoldersPercentMax)
    return [high('holders_concentrated', `Ten holders have ${percentOf(10)} % of the supply`)]
  return []
}
