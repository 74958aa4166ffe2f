/** How figures speak for or against an asset. The thresholds are the gateway's, so the verdict is called an opinion. */

export type Effect = 'for' | 'against' | 'neutral' | 'unsafe'
export type CriterionId =
  | 'trend'
  | 'timing'
  | 'momentum'
  | 'relative'
  | 'carry'
  | 'volatility'
  | 'liquidity'
  | 'safety'
  | 'edge'

const byBounds = (
  value: string,
  { above, below }: { above: Effect; below: Effect },
  bound: [number, number],
): Effect => {
  const number = Number(value)
  if (number > bound[1]) return above
  return number < bound[0] ? below : 'neutral'
}

const words =
  (table: Readonly<Record<string, Effect>>) =>
  (value: string): Effect =>
    table[value] ?? 'neutral'

export const criteria: Readonly<Record<CriterionId, (value: string) => Effect>> = {
  trend: words({ up: 'for', down: 'against' }),
  timing: words({ up: 'for', down: 'against' }),
  momentum: (value) => byBounds(value, { above: 'for', below: 'against' }, [-0.05, 0.05]),
  relative: (value) => byBounds(value, { above: 'for', below: 'against' }, [-0.05, 0.05]),
  carry: (value) => byBounds(value, { above: 'against', below: 'for' }, [-0.05, 0.2]),
  volatility: (value) => byBounds(value, { above: 'against', below: 'neutral' }, [0, 1]),
  liquidity: (value) => byBounds(value, { above: 'against', below: 'for' }, [0.001, 0.005]),
  safety: words({ passed: 'for', flagged: 'unsafe' }),
  edge: words({ positive: 'for', negative: 'against' }),
}

export type Verdict = 'constructive' | 'neutral' | 'cautious' | 'avoid'

/**
 * A verdict for or against an asset needs a lead of two criteria; an unsafe token is avoided, whatever else speaks for
 * it.
 */
export function weigh(effects: readonly string[]): Verdict {
  if (effects.includes('unsafe')) return 'avoid'
  const count = (effect: Effect) => effects.filter((each) => each === effect).length
  const balance = count('for') - count('against')
  if (balance >= 2) return 'constructive'
  return balance <= -2 ? 'cautious' : 'neutral'
}
