import { cancelScope } from './cancel.ts'
import type { Venue } from './venue.ts'

/** A client that has once sent a heartbeat loses its orders when it falls silent for this long. */
const silenceMs = 15_000

export const heartbeat = (
  { state }: Venue,
  { user, given, next }: { user: string; given: string; next: string },
): { error: string; id: string } => {
  const known = state.heartbeats.get(user)
  if (known && given !== known.id) return { error: 'Invalid Heartbeat ID', id: known.id }
  if (!known && given !== '') return { error: 'Invalid Heartbeat ID', id: '' }
  state.heartbeats.set(user, { id: next, dueMs: state.nowMs + silenceMs })
  return { error: '', id: next }
}

export const loseHeartbeats = (venue: Venue): void => {
  const { state } = venue
  for (const [user, { dueMs }] of state.heartbeats) {
    if (dueMs > state.nowMs) continue
    state.heartbeats.delete(user)
    cancelScope(venue, user, {})
  }
}
