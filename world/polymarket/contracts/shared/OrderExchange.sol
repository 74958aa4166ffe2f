// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {Addresses} from "./Addresses.sol";
import {Order, Orders} from "./Orders.sol";

/// Settles what the venue has matched. The operator says who trades how many shares for how much cash; the contract
/// holds each order to its signature, its price and its size, and the whole to what goes in.
abstract contract OrderExchange is ERC1155Holder {
    using SafeERC20 for IERC20;

    struct Fill {
        Order order;
        bytes signature;
        uint256 shares;
        /// Without the fee, which a buyer pays on top and a seller out of it.
        uint256 cash;
        uint256 fee;
    }

    /// Shares of YES and NO, and cash, that came in less what goes out.
    struct Balance {
        int256 yes;
        int256 no;
        int256 cash;
        uint256 fees;
    }

    uint8 private constant BUY = 0;
    IERC20 internal constant DOLLAR = IERC20(Addresses.PUSD);
    /// Of the cash.
    uint256 private constant FEE_MAX_BPS = 1_000;
    uint256 private constant FILLS_MAX = 100;

    /// What an order has given of its `makerAmount`.
    mapping(bytes32 orderHash => uint256) public filled;
    mapping(bytes32 key => bool) public settled;

    error NotOperator(address caller);
    error AlreadySettled(bytes32 key);
    error BadFillCount(uint256 count);
    error BadSignature(bytes32 orderHash);
    error BadSide(bytes32 orderHash);
    error NotOfThisMarket(uint256 tokenId);
    error WorseThanLimit(bytes32 orderHash);
    error OverFilled(bytes32 orderHash);
    error FeeTooHigh(bytes32 orderHash);
    error NotBalanced(int256 yes, int256 no, int256 cash);

    event OrderSettled(
        bytes32 indexed orderHash,
        address indexed maker,
        uint256 indexed tokenId,
        uint8 side,
        uint256 shares,
        uint256 cash,
        uint256 fee,
        bytes32 builder
    );
    event OrdersMatched(bytes32 indexed key, bytes32 indexed conditionId, bytes32 indexed takerOrderHash);
    event FeeCharged(address indexed receiver, uint256 amount);

    function matchOrders(bytes32 key, bytes32 conditionId, Fill[] calldata fills) external {
        require(msg.sender == Addresses.OPERATOR, NotOperator(msg.sender));
        require(!settled[key], AlreadySettled(key));
        require(fills.length > 1 && fills.length <= FILLS_MAX, BadFillCount(fills.length));
        settled[key] = true;
        (uint256 yes, uint256 no) = _positions(conditionId);
        emit OrdersMatched(key, conditionId, hashOrder(fills[0].order));
        Balance memory balance;
        for (uint256 i = 0; i < fills.length; i++) {
            _check(fills[i], yes, no);
            _count(fills[i], yes, balance);
            _collect(fills[i]);
        }
        _balance(conditionId, balance);
        for (uint256 i = 0; i < fills.length; i++) {
            _deliver(fills[i]);
        }
        if (balance.fees > 0) {
            DOLLAR.safeTransfer(Addresses.OPERATOR, balance.fees);
            emit FeeCharged(Addresses.OPERATOR, balance.fees);
        }
    }

    function hashOrder(Order memory order) public view returns (bytes32) {
        return Orders.hash(order, domainSeparator());
    }

    function isSigned(Order memory order, bytes memory signature) external view returns (bool) {
        return Orders.isSigned(order, hashOrder(order), signature);
    }

    function domainSeparator() public view returns (bytes32) {
        return Orders.domainSeparator(_version());
    }

    /// Who receives the fees.
    function getFeeReceiver() external pure returns (address) {
        return Addresses.OPERATOR;
    }

    function _version() internal pure virtual returns (string memory);

    function _positions(bytes32 conditionId) internal view virtual returns (uint256 yes, uint256 no);

    function _transferShares(address from, address to, uint256 id, uint256 amount) internal virtual;

    /// Of dollars and of positions that this contract holds.
    function _split(bytes32 conditionId, uint256 amount) internal virtual;

    function _merge(bytes32 conditionId, uint256 amount) internal virtual;

    /// Holds a fill to its order, and counts it.
    function _check(Fill calldata fill, uint256 yes, uint256 no) private {
        Order calldata order = fill.order;
        bytes32 orderHash = hashOrder(order);
        require(order.side <= 1, BadSide(orderHash));
        require(order.tokenId == yes || order.tokenId == no, NotOfThisMarket(order.tokenId));
        require(Orders.isSigned(order, orderHash, fill.signature), BadSignature(orderHash));
        require(fill.fee * 10_000 <= fill.cash * FEE_MAX_BPS, FeeTooHigh(orderHash));
        (uint256 given, uint256 taken) =
            order.side == BUY ? (fill.cash, fill.shares) : (fill.shares, fill.cash);
        require(given * order.takerAmount <= taken * order.makerAmount, WorseThanLimit(orderHash));
        require(filled[orderHash] + given <= order.makerAmount, OverFilled(orderHash));
        filled[orderHash] += given;
        emit OrderSettled(
            orderHash, order.maker, order.tokenId, order.side, fill.shares, fill.cash, fill.fee, order.builder
        );
    }

    function _count(Fill calldata fill, uint256 yes, Balance memory balance) private pure {
        bool isBuy = fill.order.side == BUY;
        int256 shares = isBuy ? -int256(fill.shares) : int256(fill.shares);
        if (fill.order.tokenId == yes) balance.yes += shares;
        else balance.no += shares;
        balance.cash += isBuy ? int256(fill.cash) : -int256(fill.cash);
        balance.fees += fill.fee;
    }

    function _collect(Fill calldata fill) private {
        Order calldata order = fill.order;
        if (order.side == BUY) DOLLAR.safeTransferFrom(order.maker, address(this), fill.cash + fill.fee);
        else _transferShares(order.maker, address(this), order.tokenId, fill.shares);
    }

    /// A pair of shares is worth a dollar: what lacks is minted in pairs, what is left over is merged.
    function _balance(bytes32 conditionId, Balance memory balance) private {
        bool isBalanced = balance.yes == balance.no && balance.cash + balance.yes == 0;
        require(isBalanced, NotBalanced(balance.yes, balance.no, balance.cash));
        if (balance.yes < 0) _split(conditionId, uint256(-balance.yes));
        if (balance.yes > 0) _merge(conditionId, uint256(balance.yes));
    }

    function _deliver(Fill calldata fill) private {
        Order calldata order = fill.order;
        if (order.side == BUY) _transferShares(address(this), order.maker, order.tokenId, fill.shares);
        else DOLLAR.safeTransfer(order.maker, fill.cash - fill.fee);
    }
}
