export default function Page() {
  return <p>POST to /orders/42, twice at the same time.</p>;
}
