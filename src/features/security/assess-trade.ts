import {
  type Assessment,
  assessmentOf,
  type RiskLevel,
  type SecurityReason,
  taxBps,
} from '#kernel/money/token-security.ts'
import type { ProbeTrade, TokenProbe } from '#upstreams/evm/token-probe.ts'

export const ownSource = 'simulation'
const usdcScale = 10n ** 6n
/** Below this liquidity in dollars, a sale of some size is not possible at a fair price. */
export const liquidityUsdMin = 5_000n
const trapTaxBps = 5_000
export const riskyTaxBps = 1_000
const noticeableTaxBps = 500

const levelOfTax = (bps: number): RiskLevel => {
  if (bps >= trapTaxBps) return 'honeypot'
  if (bps >= riskyTaxBps) return 'high'
  return bps >= noticeableTaxBps ? 'medium' : 'low'
}

export function taxReason(name: 'buy' | 'sell' | 'transfer', bps: number | null): SecurityReason[] {
  if (bps === null || bps === 0) return []
  const percent = `${Math.floor(bps / 100)}.${String(bps % 100).padStart(2, '0')}`
  const verb = { buy: 'purchase', sell: 'sale', transfer: 'transfer' }[name]
  return [{ code: `${name}_tax`, level: levelOfTax(bps), message: `A ${verb} costs a tax of ${percent} %` }]
}

export function assessTrade(probe: TokenProbe): Assessment {
  if (!probe.hasCode)
    return assessmentOf(ownSource, [
      { code: 'no_code', level: 'high', message: 'There is no contract at this address' },
    ])
  const control = controlReasons(probe)
  const { trade } = probe
  if (trade.type === 'no_pool')
    return assessmentOf(ownSource, [
      ...control,
      { code: 'no_pool', level: 'unknown', message: 'There is no pool in which a sale can be simulated' },
    ])
  if (trade.type === 'not_simulated')
    return assessmentOf(ownSource, [
      ...control,
      { code: 'not_simulated', level: 'unknown', message: `No trade was simulated: ${trade.reason}` },
    ])
  return assessSteps(trade.trade, control)
}

function controlReasons({ isUpgradeable, isMinimalProxy, owner }: TokenProbe): SecurityReason[] {
  const reasons: SecurityReason[] = []
  if (isUpgradeable)
    reasons.push({
      code: 'upgradeable',
      level: 'high',
      message: 'Its code can be replaced, so a simulation proves nothing about the next block',
    })
  if (isMinimalProxy)
    reasons.push({ code: 'minimal_proxy', level: 'low', message: 'It runs the code of another contract' })
  if (owner !== null)
    reasons.push({
      code: 'owner_not_renounced',
      level: 'medium',
      message: 'It has an owner, who may be able to change its rules',
    })
  return reasons
}

function assessSteps(
  { buy, transfer, sell, liquidityUnits }: ProbeTrade,
  control: SecurityReason[],
): Assessment {
  const reasons = [...control, ...liquidityReasons(liquidityUnits)]
  if (!buy.done || buy.gotUnits === 0n) {
    const why = buy.done ? 'nothing arrived' : buy.reason
    reasons.push({ code: 'buy_failed', level: 'high', message: `It cannot be bought: ${why}` })
    return assessmentOf(ownSource, reasons)
  }
  const buyTaxBps = taxBps(buy.quotedUnits, buy.gotUnits)
  const transferTaxBps = transfer.done ? taxBps(transfer.quotedUnits, transfer.gotUnits) : null
  const sellTaxBps = sell.done ? taxBps(sell.quotedUnits, sell.gotUnits) : null
  reasons.push(
    ...taxReason('buy', buyTaxBps),
    ...taxReason('transfer', transferTaxBps),
    ...taxReason('sell', sellTaxBps),
  )
  if (!transfer.done)
    reasons.push({
      code: 'transfer_failed',
      level: 'high',
      message: `A buyer cannot transfer it in the same block: ${transfer.reason}`,
    })
  if (!sell.done || sellTaxBps === null)
    reasons.push({
      code: 'sell_failed',
      level: 'honeypot',
      message: `A buyer cannot sell it in the same block: ${sell.reason || 'nothing was quoted'}`,
    })
  const isHoneypot = reasons.some(({ level }) => level === 'honeypot')
  return assessmentOf(ownSource, reasons, { buyTaxBps, sellTaxBps, transferTaxBps, isHoneypot })
}

function liquidityReasons(liquidityUnits: bigint | null): SecurityReason[] {
  if (liquidityUnits === null)
    return [{ code: 'liquidity_unknown', level: 'medium', message: 'The value of its pool is not known' }]
  if (liquidityUnits >= liquidityUsdMin * usdcScale) return []
  return [
    {
      code: 'thin_liquidity',
      level: 'high',
      message: `Its pool holds less than ${liquidityUsdMin} dollars against it`,
    },
  ]
}
