/** Exits and look-ups come first, then signed actions, new orders, views, and the reconciler. */
export type Urgency = 'exit' | 'work' | 'admission' | 'view' | 'background'
