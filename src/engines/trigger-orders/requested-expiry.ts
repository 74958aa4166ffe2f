import { invalid } from '#kernel/contract/fault.ts'

export function expiryOf({ expires_at: at }: { expires_at?: string | null }, now: Date): Date | null {
  if (!at) return null
  const expiresAt = new Date(at)
  if (expiresAt > now) return expiresAt
  throw invalid('expires_at', 'greater_than', 'Input should be in the future', { gt: now.toISOString() })
}
