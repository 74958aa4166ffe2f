import type { Citation } from '#kernel/wire/chat-answerer.ts'
import { type Claim, isClaimId } from './claim.ts'
import type { Report } from './report.ts'

const citationsMax = 400

export function citationsOf(
  text: string,
  { claims, sources }: Pick<Report, 'claims' | 'sources'>,
): Citation[] {
  const byId = new Map(claims.map((claim) => [claim.id, claim]))
  const leavesOf = (claim: Claim): string[] =>
    claim.inputs.flatMap((input) => {
      const other = isClaimId(input) ? byId.get(input) : undefined
      if (other) return leavesOf(other)
      return input.startsWith('=') ? [] : [input]
    })
  const marks = [...new Set([...text.matchAll(/\[(\d{1,4})\]/g)].map(([, n]) => Number(n)))]
  const found = marks.flatMap((n) => {
    const claim = byId.get(`c${n}`)
    return [...new Set(claim ? leavesOf(claim) : [])].flatMap((leaf): Citation[] => {
      const [id, pointer = ''] = leaf.split('#', 2)
      const source = sources.find((each) => each.id === id)
      return source ? [{ n, tool: source.tool, pointer, fetched_at: source.fetched_at }] : []
    })
  })
  return found.slice(0, citationsMax)
}
